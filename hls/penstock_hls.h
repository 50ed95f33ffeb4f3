// The two kernels: REDUCE (COPY is its case of one source) and SELECT, as Vitis HLS C++ that also
// compiles as plain C++. What they compute is defined by host/descriptor; here is how they are
// called, by a host program through xrt::kernel or as functions.
//
// Arguments are in the order of xrt::kernel. Pointers are base addresses (the buffer that holds the
// pool, or host memory), on 64 bytes except `sources`, which needs 8; everything else that names
// memory is a byte offset from them. Several arguments that say `pool` get the same buffer: each is
// one port. Control is ap_ctrl_chain: start at bit 0, done at bit 1, idle at bit 2, ready at bit 3
// and continue at bit 4 of offset 0x00; 0x04, 0x08 and 0x0c are the interrupt's. Nothing is checked
// but what penstock_hls_reduce_takes and the status of SELECT say: validity and windows are the
// business of whoever starts the kernel, before it does.
//
// As functions: one call at a time for SELECT, which keeps a table between calls; REDUCE may be
// called by several threads at once. A call reads whole words of 64 bytes around its operands,
// and writes none but the bytes of its destinations.
#ifndef PENSTOCK_HLS_PENSTOCK_HLS_H_
#define PENSTOCK_HLS_PENSTOCK_HLS_H_

#include "penstock/descriptor/types.h"
#include "platform.h"

// Whether REDUCE does this: type, redop and out_type of types.h, 1..64 sources, 1..3 destinations.
inline bool penstock_hls_reduce_takes(std::uint32_t type, std::uint32_t redop,
                                      std::uint32_t out_type, std::uint32_t n_src,
                                      std::uint32_t n_dst) {
#pragma HLS INLINE
  const std::uint32_t floats = 1u << PENSTOCK_F16 | 1u << PENSTOCK_F32 | 1u << PENSTOCK_BF16 |
                               1u << PENSTOCK_F8E4M3 | 1u << PENSTOCK_F8E5M2;
  const std::uint32_t all = ((1u << PENSTOCK_TYPE_COUNT) - 1) & ~(1u << PENSTOCK_F64);
  if (type >= PENSTOCK_TYPE_COUNT || out_type >= PENSTOCK_TYPE_COUNT) return false;
  const bool converts = (floats >> type & 1) != 0 && (floats >> out_type & 1) != 0;
  return (all >> type & 1) != 0 && (type == out_type || converts) && redop < PENSTOCK_REDOP_COUNT &&
         n_src >= 1 && n_src <= 64 && n_dst >= 1 && n_dst <= 3;
}

// The largest table that SELECT takes: rows, resources and free columns. It may have any number of
// bit columns.
#define PENSTOCK_HLS_MAX_ROWS 131072u
#define PENSTOCK_HLS_MAX_RESOURCES 8u
#define PENSTOCK_HLS_MAX_FREE 8u

// Flags of SELECT.
#define PENSTOCK_HLS_COMMIT 1u  // commit each winner before the next task is scored
#define PENSTOCK_HLS_FORGET 2u  // the table that was kept is not to be used: load this one

extern "C" {

// REDUCE. Touches nothing where it does not take what it is asked for, or count is 0.
//
//   argument       offset  port             what
//   pool_in        0x010   m_axi gmem_in    base of the sources, 512 bits
//   pool_out       0x01c   m_axi gmem_out   base of the destinations, 512 bits: whole words
//   pool_edge      0x028   m_axi gmem_edge  the same base, 8 bits: of words that are not whole
//   sources        0x034   m_axi gmem_list  n_src offsets from pool_in, in the fold's order
//   destination_0  0x040                    offset from pool_out
//   destination_1  0x04c                    if n_dst is above 1
//   destination_2  0x058                    if n_dst is above 2
//   count          0x064                    elements
//   scale          0x070                    as of the descriptor, for PENSTOCK_PREMUL_SUM
//   type           0x07c                    32 bits, as all that follow
//   redop          0x084
//   out_type       0x08c
//   n_src          0x094
//   n_dst          0x09c
//
// A destination may be a source exactly where elements have one size. COPY of n bytes: type and
// out_type PENSTOCK_UINT8, redop PENSTOCK_SUM, one source, count n.
void penstock_hls_reduce(penstock_hls::WordPort pool_in, penstock_hls::WordPort pool_out,
                         std::uint8_t* pool_edge, const std::uint64_t* sources,
                         std::uint64_t destination_0, std::uint64_t destination_1,
                         std::uint64_t destination_2, std::uint64_t count, std::uint64_t scale,
                         std::uint32_t type, std::uint32_t redop, std::uint32_t out_type,
                         std::uint32_t n_src, std::uint32_t n_dst);

// SELECT of a batch of tasks, on a table, a program and tasks that penstock_*_check accept.
//
//   argument      offset  port                what
//   pool_table    0x010   m_axi gmem_table    base, 512 bits: columns are read
//   pool_records  0x01c   m_axi gmem_records  base, 64 bits: header, program and tasks are read
//   pool_cells    0x028   m_axi gmem_cells    base, 64 bits: cells that commits change are written
//   pool_results  0x034   m_axi gmem_results  base, 64 bits: results and status are written
//   header        0x040                       offset of the penstock_node_table, on 8 bytes
//   table         0x04c                       offset of the table itself, on 64 bytes: its
//                                             header, of which `header` may be a copy, and columns
//   program       0x058                       offset of the penstock_program, on 8 bytes
//   tasks         0x064                       offset of n_tasks penstock_task, on 8 bytes
//   results       0x070                       offset of n_tasks penstock_result, on 8 bytes
//   status        0x07c                       offset of two 64-bit words, on 8 bytes: a
//                                             penstock_status in the low half of the first and a
//                                             penstock_field in its high half; detail in the second
//   n_tasks       0x088                       32 bits
//   flags         0x090                       32 bits: PENSTOCK_HLS_*
//
// PENSTOCK_UNSUPPORTED, and nothing but the status written, where the table (field TABLE), the
// program (PROGRAM, detail the operation's index or PENSTOCK_MAX_OPS) or a task (TASK, detail its
// index) is more than the kernel does: see hls/README.md. Commits are written to the table's cells,
// and all is in memory when the kernel is done. The header is not written: whoever started the
// kernel raises the table's generation by one for each committed result with PENSTOCK_OK.
void penstock_hls_select(penstock_hls::WordPort pool_table, const std::uint64_t* pool_records,
                         penstock_hls::CellPort pool_cells, std::uint64_t* pool_results,
                         std::uint64_t header, std::uint64_t table, std::uint64_t program,
                         std::uint64_t tasks, std::uint64_t results, std::uint64_t status,
                         std::uint32_t n_tasks, std::uint32_t flags);

}  // extern "C"
#endif
