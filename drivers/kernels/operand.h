/* Elements of an operand by their bits: out of a pack, out of memory at any address, four at once.
 */
#ifndef PENSTOCK_DRIVERS_KERNELS_OPERAND_H_
#define PENSTOCK_DRIVERS_KERNELS_OPERAND_H_

#include "penstock/drivers/kernels/arguments.h"
#include "penstock/drivers/kernels/element.h"

PENSTOCK_KERNELS_BEGIN

typedef PENSTOCK_GLOBAL const u8* source_t;
typedef PENSTOCK_GLOBAL u8* target_t;

/* Element i of a pack, of 1, 2, 4 or 8 bytes. */
PENSTOCK_FUNCTION u32 pack_get_1(pack p, u32 i) { return (p.word[i / 4] >> (i % 4 * 8)) & 0xff; }
PENSTOCK_FUNCTION u32 pack_get_2(pack p, u32 i) { return (p.word[i / 2] >> (i % 2 * 16)) & 0xffff; }
PENSTOCK_FUNCTION u32 pack_get_4(pack p, u32 i) { return p.word[i]; }
PENSTOCK_FUNCTION u64 pack_get_8(pack p, u32 i) {
  return (u64)p.word[2 * i + 1] << 32 | p.word[2 * i];
}
/* Into a pack of zeros; of the value, only the element's bits are taken. */
PENSTOCK_FUNCTION void pack_put_1(pack* p, u32 i, u32 value) {
  p->word[i / 4] |= (value & 0xff) << (i % 4 * 8);
}
PENSTOCK_FUNCTION void pack_put_2(pack* p, u32 i, u32 value) {
  p->word[i / 2] |= (value & 0xffff) << (i % 2 * 16);
}
PENSTOCK_FUNCTION void pack_put_4(pack* p, u32 i, u32 value) { p->word[i] = value; }
PENSTOCK_FUNCTION void pack_put_8(pack* p, u32 i, u64 value) {
  p->word[2 * i] = (u32)value;
  p->word[2 * i + 1] = (u32)(value >> 32);
}

/* Element i in memory; `aligned` says that the address is a multiple of its size. */
PENSTOCK_FUNCTION u32 load_1(source_t p, u64 i, u32 aligned) {
  (void)aligned;
  return p[i];
}
PENSTOCK_FUNCTION u32 load_2(source_t p, u64 i, u32 aligned) {
  if (aligned != 0) return ((PENSTOCK_GLOBAL const u16*)p)[i];
  p += 2 * i;
  return p[0] | (u32)p[1] << 8;
}
PENSTOCK_FUNCTION u32 load_4(source_t p, u64 i, u32 aligned) {
  if (aligned != 0) return ((PENSTOCK_GLOBAL const u32*)p)[i];
  p += 4 * i;
  return p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}
PENSTOCK_FUNCTION u64 load_8(source_t p, u64 i, u32 aligned) {
  if (aligned != 0) return ((PENSTOCK_GLOBAL const u64*)p)[i];
  return load_4(p, 2 * i, 0) | (u64)load_4(p, 2 * i + 1, 0) << 32;
}
PENSTOCK_FUNCTION void store_1(target_t p, u64 i, u32 value, u32 aligned) {
  (void)aligned;
  p[i] = (u8)value;
}
PENSTOCK_FUNCTION void store_2(target_t p, u64 i, u32 value, u32 aligned) {
  if (aligned != 0) {
    ((PENSTOCK_GLOBAL u16*)p)[i] = (u16)value;
    return;
  }
  p[2 * i] = (u8)value;
  p[2 * i + 1] = (u8)(value >> 8);
}
PENSTOCK_FUNCTION void store_4(target_t p, u64 i, u32 value, u32 aligned) {
  if (aligned != 0) {
    ((PENSTOCK_GLOBAL u32*)p)[i] = value;
    return;
  }
  store_2(p, 2 * i, value, 0);
  store_2(p, 2 * i + 1, value >> 16, 0);
}
PENSTOCK_FUNCTION void store_8(target_t p, u64 i, u64 value, u32 aligned) {
  if (aligned != 0) {
    ((PENSTOCK_GLOBAL u64*)p)[i] = value;
    return;
  }
  store_4(p, 2 * i, (u32)value, 0);
  store_4(p, 2 * i + 1, (u32)(value >> 32), 0);
}

/* Four numbers that are folded in f32. */
typedef struct {
  f32 x[4];
} f32x4;

/* Elements i to i + n - 1, n up to 4 and i a multiple of 4, of an operand of each type; missing
 * ones are 0. `wide` says that its address is a multiple of the bytes of four elements (of 4 bytes
 * for block-scaled int8). */
PENSTOCK_FUNCTION f32x4 load_quad_f32(source_t p, u64 i, u32 n, u32 block, u32 aligned, u32 wide) {
  f32x4 q = {{0, 0, 0, 0}};
  (void)block;
  if (wide != 0 && n == 4) {
    const pack words = load_pack(p + 4 * i);
    for (u32 k = 0; k < 4; ++k) q.x[k] = f32_of_bits(words.word[k]);
  } else {
    for (u32 k = 0; k < n; ++k) q.x[k] = f32_of_bits(load_4(p, i + k, aligned));
  }
  return q;
}
#define DEFINE_LOAD_QUAD_2(type)                                                             \
  PENSTOCK_FUNCTION f32x4 load_quad_##type(source_t p, u64 i, u32 n, u32 block, u32 aligned, \
                                           u32 wide) {                                       \
    f32x4 q = {{0, 0, 0, 0}};                                                                \
    (void)block;                                                                             \
    if (wide != 0 && n == 4) {                                                               \
      const u64 codes = ((PENSTOCK_GLOBAL const u64*)p)[i / 4];                              \
      for (u32 k = 0; k < 4; ++k) q.x[k] = widen_##type((u32)(codes >> (16 * k)) & 0xffff);  \
    } else {                                                                                 \
      for (u32 k = 0; k < n; ++k) q.x[k] = widen_##type(load_2(p, i + k, aligned));          \
    }                                                                                        \
    return q;                                                                                \
  }
#define DEFINE_LOAD_QUAD_1(type)                                                             \
  PENSTOCK_FUNCTION f32x4 load_quad_##type(source_t p, u64 i, u32 n, u32 block, u32 aligned, \
                                           u32 wide) {                                       \
    f32x4 q = {{0, 0, 0, 0}};                                                                \
    (void)block;                                                                             \
    if (wide != 0 && n == 4) {                                                               \
      const u32 codes = ((PENSTOCK_GLOBAL const u32*)p)[i / 4];                              \
      for (u32 k = 0; k < 4; ++k) q.x[k] = widen_##type((codes >> (8 * k)) & 0xff);          \
    } else {                                                                                 \
      for (u32 k = 0; k < n; ++k) q.x[k] = widen_##type(load_1(p, i + k, aligned));          \
    }                                                                                        \
    return q;                                                                                \
  }
DEFINE_LOAD_QUAD_2(f16)
DEFINE_LOAD_QUAD_2(bf16)
DEFINE_LOAD_QUAD_1(f8e4m3)
DEFINE_LOAD_QUAD_1(f8e5m2)

PENSTOCK_FUNCTION f32x4 load_quad_block(source_t p, u64 i, u32 n, u32 block, u32 aligned,
                                        u32 wide) {
  f32x4 q = {{0, 0, 0, 0}};
  const source_t record = p + i / block * (BLOCK_SCALE_BYTES + block);
  const u32 first = BLOCK_SCALE_BYTES + (u32)(i % block);
  const f32 scale = f32_of_bits(load_4(record, 0, wide));
  (void)aligned;
  if (wide != 0 && n == 4) {
    const u32 codes = load_4(record, first / 4, 1);
    for (u32 k = 0; k < 4; ++k) q.x[k] = block_value((codes >> (8 * k)) & 0xff, scale);
  } else {
    for (u32 k = 0; k < n; ++k) q.x[k] = block_value(record[first + k], scale);
  }
  return q;
}

/* Likewise the way out, each rounded from f32. */
PENSTOCK_FUNCTION void store_quad_f32(target_t p, u64 i, u32 n, f32x4 q, u32 aligned, u32 wide) {
  if (wide != 0 && n == 4) {
    pack words;
    for (u32 k = 0; k < 4; ++k) words.word[k] = bits_of_f32(canonical_f32(q.x[k]));
    store_pack(p + 4 * i, words);
  } else {
    for (u32 k = 0; k < n; ++k) store_4(p, i + k, bits_of_f32(canonical_f32(q.x[k])), aligned);
  }
}
#define DEFINE_STORE_QUAD_2(type)                                                          \
  PENSTOCK_FUNCTION void store_quad_##type(target_t p, u64 i, u32 n, f32x4 q, u32 aligned, \
                                           u32 wide) {                                     \
    if (wide != 0 && n == 4) {                                                             \
      u64 codes = 0;                                                                       \
      for (u32 k = 0; k < 4; ++k) codes |= (u64)narrow_##type(q.x[k]) << (16 * k);         \
      ((PENSTOCK_GLOBAL u64*)p)[i / 4] = codes;                                            \
    } else {                                                                               \
      for (u32 k = 0; k < n; ++k) store_2(p, i + k, narrow_##type(q.x[k]), aligned);       \
    }                                                                                      \
  }
#define DEFINE_STORE_QUAD_1(type)                                                          \
  PENSTOCK_FUNCTION void store_quad_##type(target_t p, u64 i, u32 n, f32x4 q, u32 aligned, \
                                           u32 wide) {                                     \
    if (wide != 0 && n == 4) {                                                             \
      u32 codes = 0;                                                                       \
      for (u32 k = 0; k < 4; ++k) codes |= narrow_##type(q.x[k]) << (8 * k);               \
      ((PENSTOCK_GLOBAL u32*)p)[i / 4] = codes;                                            \
    } else {                                                                               \
      for (u32 k = 0; k < n; ++k) store_1(p, i + k, narrow_##type(q.x[k]), aligned);       \
    }                                                                                      \
  }
DEFINE_STORE_QUAD_2(f16)
DEFINE_STORE_QUAD_2(bf16)
DEFINE_STORE_QUAD_1(f8e4m3)
DEFINE_STORE_QUAD_1(f8e5m2)

PENSTOCK_FUNCTION void store_quad(u32 type, target_t p, u64 i, u32 n, f32x4 q, u32 aligned,
                                  u32 wide) {
  switch (type) {
    case TYPE_F16:
      store_quad_f16(p, i, n, q, aligned, wide);
      break;
    case TYPE_BF16:
      store_quad_bf16(p, i, n, q, aligned, wide);
      break;
    case TYPE_F8E4M3:
      store_quad_f8e4m3(p, i, n, q, aligned, wide);
      break;
    case TYPE_F8E5M2:
      store_quad_f8e5m2(p, i, n, q, aligned, wide);
      break;
    default:
      store_quad_f32(p, i, n, q, aligned, wide);
      break;
  }
}

PENSTOCK_KERNELS_END
#endif
