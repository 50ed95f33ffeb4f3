/* COPY: bytes from one source to up to three destinations. */
#ifndef PENSTOCK_DRIVERS_KERNELS_COPY_H_
#define PENSTOCK_DRIVERS_KERNELS_COPY_H_

#include "penstock/drivers/kernels/operand.h"

PENSTOCK_KERNELS_BEGIN

/* A destination is the source exactly or does not overlap it, so every work item may go its way.
 * Four packs are in flight at once, a launch's width apart, so that neighbours stay neighbours. */
PENSTOCK_KERNEL(penstock_copy, copy_arguments) {
  PENSTOCK_ENTER(copy_arguments);
  const source_t src = penstock_at(memory, arguments.src);
  const u64 items = PENSTOCK_ITEMS;
  const u64 packs = arguments.packs;
  u64 i = PENSTOCK_ITEM;
  for (; i + 3 * items < packs; i += 4 * items) {
    pack p[4];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < 4; ++k) p[k] = load_pack(src + arguments.head + 16 * (i + k * items));
    for (u32 d = 0; d < arguments.n_dst; ++d) {
      const target_t dst = penstock_at(memory, arguments.dst[d]) + arguments.head;
      PENSTOCK_UNROLL
      for (u32 k = 0; k < 4; ++k) store_pack(dst + 16 * (i + k * items), p[k]);
    }
  }
  for (; i < packs; i += items) {
    const pack p = load_pack(src + arguments.head + 16 * i);
    for (u32 d = 0; d < arguments.n_dst; ++d)
      store_pack(penstock_at(memory, arguments.dst[d]) + arguments.head + 16 * i, p);
  }
  for (u64 rest = PENSTOCK_ITEM; rest < arguments.bytes - 16 * packs; rest += items) {
    const u64 at = rest < arguments.head ? rest : rest + 16 * packs;
    const u8 value = src[at];
    for (u32 d = 0; d < arguments.n_dst; ++d) penstock_at(memory, arguments.dst[d])[at] = value;
  }
}

PENSTOCK_KERNELS_END
#endif
