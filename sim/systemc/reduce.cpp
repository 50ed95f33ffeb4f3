// COPY and REDUCE: a reader that brings the sources of a chunk one after another into the fold, and
// a writer that sends a chunk's results to the destinations. Both work on a chunk of their own, so
// that reading, folding and writing overlap, within a job and from one job to the next.
#include <algorithm>

#include "penstock/sim/systemc/card.h"

namespace penstock::systemc {
namespace {

constexpr std::size_t kAccumulators = 2;  // of so many chunks
constexpr std::size_t kBeatsOfChunk = Fold::kChunkBytes / 64;

}  // namespace

void Card::read_process() {
  process([this] {
    while (jobs_.empty()) pause_for(job_event_);
    const std::shared_ptr<Job> job = jobs_.front();
    if (arrival_ < sc_core::sc_time_stamp()) pause(timing_.job_start);
    run_job(job);
    jobs_.pop_front();
    command_event_.notify(sc_core::SC_ZERO_TIME);
  });
}

void Card::run_job(const std::shared_ptr<Job>& job) {
  const std::uint32_t in_bytes = Fold::element_bytes(job->fold.type);
  const std::uint32_t out_bytes = Fold::element_bytes(job->fold.out_type);
  const std::uint32_t per_chunk = Fold::kChunkBytes / in_bytes;
  const auto sources = static_cast<std::uint32_t>(job->sources.size());
  Fold fold(job->fold);
  std::vector<std::uint8_t> operand(Fold::kChunkBytes);
  for (std::uint64_t at = 0; at < job->elements; at += per_chunk) {
    const auto elements =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(per_chunk, job->elements - at));
    Chunk chunk;
    chunk.job = job;
    chunk.offset = at * out_bytes;
    chunk.last = at + elements == job->elements;
    const std::uint64_t dense = beats(0, std::uint64_t{elements} * in_bytes);
    std::uint64_t moved = 0;
    sc_core::sc_time first = sc_core::sc_time_stamp();  // the earliest that all could begin
    for (std::uint32_t s = 0; s < sources && !chunk.failed; ++s) {
      const std::uint64_t bus = job->sources[s] + at * in_bytes;
      const std::uint64_t bytes = std::uint64_t{elements} * in_bytes;
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      const Transfer read = transfer(true, false, bus, operand.data(), bytes, &delay);
      first = std::max(first, sc_core::sc_time_stamp() + delay);
      if (!read.ok) {
        chunk.failed = chunk.last = true;
        chunk.answer = {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, read.bus};
        break;
      }
      // An accumulator is used again only when the last addition to it has left the pipe.
      const std::uint64_t stalls =
          sources > 1 && dense < timing_.fold_depth ? timing_.fold_depth - dense : 0;
      moved += beats(bus, bytes) + stalls;
      fold.add(s, operand.data(), elements);
    }
    if (!chunk.failed) {
      chunk.bytes.resize(std::size_t{elements} * out_bytes);
      std::vector<std::uint8_t>& out = chunk.bytes;
      fold.finish(out.data(), elements);
    }
    // Data comes a beat per cycle once the first has come; no more is asked for than there is room.
    arrival_ = std::max(first, arrival_) + cycles(moved);
    chunk.at = arrival_ + cycles(timing_.drain_depth);
    const bool failed = chunk.failed;
    // What was asked for and what is in the accumulators is not yet written.
    const std::size_t between = kAccumulators + timing_.read_ahead_beats / kBeatsOfChunk;
    while (chunks_.size() >= between) pause_for(chunk_event_);
    chunks_.push_back(std::move(chunk));
    chunk_event_.notify(sc_core::SC_ZERO_TIME);
    pause(moved);
    if (arrival_ > sc_core::sc_time_stamp() + cycles(timing_.read_ahead_beats))
      pause_until(arrival_ - cycles(timing_.read_ahead_beats));
    if (failed) return;
  }
}

void Card::write_process() {
  process([this] {
    while (chunks_.empty()) pause_for(chunk_event_);
    // The chunk leaves the accumulators as it is written.
    Chunk chunk = std::move(chunks_.front());
    pause_until(chunk.at);
    write_chunk(&chunk);
    chunks_.pop_front();
    chunk_event_.notify(sc_core::SC_ZERO_TIME);
  });
}

void Card::write_chunk(Chunk* chunk) {
  const std::shared_ptr<Job> job = chunk->job;
  sc_core::sc_time acknowledged = sc_core::sc_time_stamp();
  if (!chunk->failed) {
    if (write_free_ < sc_core::sc_time_stamp()) pause(timing_.write_start);
    for (std::uint32_t i = 0; i < job->destinations; ++i) {
      const std::uint64_t bus = job->destination[i].base + chunk->offset;
      const std::uint64_t written = beats(bus, chunk->bytes.size());
      pause(written);
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      const Transfer write =
          transfer(true, true, bus, chunk->bytes.data(), chunk->bytes.size(), &delay);
      acknowledged = std::max(acknowledged, sc_core::sc_time_stamp() + delay);
      if (!write.ok && chunk->answer.ok())
        chunk->answer = {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, write.bus};
    }
    write_free_ = sc_core::sc_time_stamp();
  }
  if (job->answer.ok()) job->answer = chunk->answer;
  job->acknowledged = std::max(job->acknowledged, acknowledged);
  if (chunk->last) end_job(job);
}

void Card::end_job(const std::shared_ptr<Job>& job) {
  // Jobs end in order.
  const sc_core::sc_time now = sc_core::sc_time_stamp();
  job_end_ = std::max({job_end_, job->acknowledged + cycles(timing_.done), now});
  later(job_end_ - now, [this, job] {
    in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), job));
    if (!job->answer.ok())
      report_error(CardError::operand, job->queue, job->sequence, job->answer.detail, job->record);
    job_done(job->queue, job->cookie, job->answer, job->record);
  });
}

}  // namespace penstock::systemc
