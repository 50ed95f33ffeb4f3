/* Addresses in descriptors: a space in the top byte, an offset in the other seven.
 *
 * Spaces 0..15 are the memory devices of the pool that the queue was opened on, so that an address
 * with a space below 16 is a **pool offset**: the same number on every host, wherever it maps the
 * pool. Space 0xf0 is this process's own memory (the offset is the virtual address); only host
 * engines reach it, others refuse it with PENSTOCK_UNSUPPORTED and their caller stages the bytes
 * through the pool.
 */
#ifndef PENSTOCK_DESCRIPTOR_ADDRESS_H_
#define PENSTOCK_DESCRIPTOR_ADDRESS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t penstock_address;

#define PENSTOCK_MAX_DEVICES 16u
#define PENSTOCK_CACHE_LINE 64u
#define PENSTOCK_SPACE_HOST 0xf0u
#define PENSTOCK_OFFSET_MASK ((UINT64_C(1) << 56) - 1)

static inline penstock_address penstock_address_make(uint32_t space, uint64_t offset) {
  return ((uint64_t)space << 56) | (offset & PENSTOCK_OFFSET_MASK);
}
static inline penstock_address penstock_address_host(const void* pointer) {
  return penstock_address_make(PENSTOCK_SPACE_HOST, (uint64_t)(uintptr_t)pointer);
}
static inline uint32_t penstock_address_space(penstock_address address) {
  return (uint32_t)(address >> 56);
}
static inline uint64_t penstock_address_offset(penstock_address address) {
  return address & PENSTOCK_OFFSET_MASK;
}
static inline int penstock_address_is_host(penstock_address address) {
  return penstock_address_space(address) == PENSTOCK_SPACE_HOST;
}

#ifdef __cplusplus
}
#endif
#endif
