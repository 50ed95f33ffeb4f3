// REDUCE, and COPY as its case of one source. See reduce_job.h for how a job is cut,
// reduce_stages.h for what each stage does.
#include "penstock_hls.h"
#include "reduce_stages.h"

namespace penstock_hls {
namespace {

void reduce_region(const ReduceJob job, WordPort pool_in, WordPort pool_out, u8* pool_edge,
                   const u64* sources) {
#pragma HLS DATAFLOW
  ReadBursts requests("requests");
  BurstWords reads("reads");
  Segments segments("segments");
  WordTotals words_total("words_total");
  SegmentTotals totals("totals");
  Words words("words");
  Words beats("beats");
  LanesStream sums("sums");
  LanesStream codes("codes");
  Words results("results");
  WriteBursts bursts("bursts");
  Words whole("whole");
  Edges edges("edges");
  PENSTOCK_HLS_REGION(region);
  PENSTOCK_HLS_STAGE(region,
                     plan_reads(job, sources, requests, reads, segments, words_total, totals));
  PENSTOCK_HLS_STAGE(region, read_words(job, pool_in, requests, reads, words_total, words));
  PENSTOCK_HLS_STAGE(region, align_words(segments, totals, words, beats));
  PENSTOCK_HLS_STAGE(region, fold_words(job, beats, sums));
  PENSTOCK_HLS_STAGE(region, finish_words(job, sums, codes));
  PENSTOCK_HLS_STAGE(region, pack_words(job, codes, results));
  PENSTOCK_HLS_STAGE(region, place_words(job, results, bursts, whole, edges));
  PENSTOCK_HLS_STAGE(region, write_words(job, pool_out, bursts, whole));
  PENSTOCK_HLS_STAGE(region, write_edges(job, pool_edge, edges));
}

}  // namespace
}  // namespace penstock_hls

void penstock_hls_reduce(penstock_hls::WordPort pool_in, penstock_hls::WordPort pool_out,
                         std::uint8_t* pool_edge, const std::uint64_t* sources,
                         std::uint64_t destination_0, std::uint64_t destination_1,
                         std::uint64_t destination_2, std::uint64_t count, std::uint64_t scale,
                         std::uint32_t type, std::uint32_t redop, std::uint32_t out_type,
                         std::uint32_t n_src, std::uint32_t n_dst) {
#pragma HLS INTERFACE mode = m_axi port = pool_in bundle = gmem_in offset = slave latency = \
    64 num_read_outstanding = 32 max_read_burst_length = 64
#pragma HLS INTERFACE mode = m_axi port = pool_out bundle = gmem_out offset = slave latency = \
    64 num_write_outstanding = 32 max_write_burst_length = 64
#pragma HLS INTERFACE mode = m_axi port = pool_edge bundle = gmem_edge offset = \
    slave num_write_outstanding = 8 max_write_burst_length = 16
#pragma HLS INTERFACE mode = m_axi port = sources bundle = gmem_list offset = \
    slave num_read_outstanding = 2 max_read_burst_length = 64
#pragma HLS INTERFACE mode = s_axilite port = pool_in bundle = control
#pragma HLS INTERFACE mode = s_axilite port = pool_out bundle = control
#pragma HLS INTERFACE mode = s_axilite port = pool_edge bundle = control
#pragma HLS INTERFACE mode = s_axilite port = sources bundle = control
#pragma HLS INTERFACE mode = s_axilite port = destination_0 bundle = control
#pragma HLS INTERFACE mode = s_axilite port = destination_1 bundle = control
#pragma HLS INTERFACE mode = s_axilite port = destination_2 bundle = control
#pragma HLS INTERFACE mode = s_axilite port = count bundle = control
#pragma HLS INTERFACE mode = s_axilite port = scale bundle = control
#pragma HLS INTERFACE mode = s_axilite port = type bundle = control
#pragma HLS INTERFACE mode = s_axilite port = redop bundle = control
#pragma HLS INTERFACE mode = s_axilite port = out_type bundle = control
#pragma HLS INTERFACE mode = s_axilite port = n_src bundle = control
#pragma HLS INTERFACE mode = s_axilite port = n_dst bundle = control
#pragma HLS INTERFACE mode = s_axilite port = return bundle = control
#pragma HLS INTERFACE mode = ap_ctrl_chain port = return
  if (!penstock_hls_reduce_takes(type, redop, out_type, n_src, n_dst) || count == 0) return;
  const penstock_hls::ReduceJob job =
      penstock_hls::reduce_job(destination_0, destination_1, destination_2, count, scale, type,
                               redop, out_type, n_src, n_dst);
  penstock_hls::reduce_region(job, pool_in, pool_out, pool_edge, sources);
}
