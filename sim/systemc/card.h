// A transaction-level model of the card (TLM-2.0, approximately timed): registers, rings,
// doorbells, windows, waits, reductions and decisions, with the RTL's latencies and rates as
// parameters.
//
// It is a model of the whole card, not a picture of it in front of a host engine: checks, windows,
// rings, faults and arithmetic are its own code. Functionally, an operation reads its operands when
// the card would and writes its results when the card would; in between, time passes in the chunks
// and bursts of the RTL, and not cycle by cycle.
//
// Everything runs inside the SystemC kernel, one process at a time.
#ifndef PENSTOCK_SIM_SYSTEMC_CARD_H_
#define PENSTOCK_SIM_SYSTEMC_CARD_H_

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "penstock/sim/systemc/arithmetic.h"
#include "penstock/sim/systemc/descriptor_check.h"
#include "penstock/sim/systemc/timing.h"

namespace penstock::systemc {

class Selector;

// What the counters of the register map count.
enum Counter : std::uint32_t {
  kCycles,
  kBusyCycles,
  kDescriptors,
  kCompletions,
  kCtlReadBeats,
  kCtlWriteBeats,
  kDataReadBeats,
  kDataWriteBeats,
  kDataReadStalls,
  kDataWriteStalls,
  kPolls,
  kDecisions,
  kRowsScanned,
  kCounters
};

// What stands in ERROR_CODE.
enum class CardError : std::uint32_t {
  none = 0,
  fetch = 1,
  completion = 2,
  doorbell = 3,
  operand = 4
};

class Card : public sc_core::sc_module {
 public:
  Card(const sc_core::sc_module_name& name, const Timing& timing, const sc_core::sc_time& cycle);
  ~Card() override;

  tlm_utils::simple_target_socket<Card> registers;
  tlm_utils::simple_initiator_socket<Card> ctl;
  tlm_utils::simple_initiator_socket<Card> data;
  bool interrupt() const;

 private:
  friend class Selector;

  enum class Kind : std::uint8_t { none, reduce, select, sync };

  struct Window {
    std::uint64_t base = 0, bytes = 0, bus = 0;
    std::uint32_t rights = 0;
  };
  // A descriptor that was fetched, and what became of it so far.
  struct Fetched {
    penstock_descriptor record;
    sc_core::sc_time at;    // when its data is there
    bool failed = false;    // the read was answered with an error
    std::uint64_t bus = 0;  // of the record
    bool decoded = false;
    Answer answer;           // of the check
    Kind kind = Kind::none;  // which part executes it; none: the command processor itself
  };
  struct Queue {
    std::uint64_t ring = 0, completions = 0;
    std::uint32_t depth_log2 = 0, timeout_ms = 0, windows = 0;
    bool enabled = false, cancelled = false, stopped = false;
    CardError error = CardError::none;
    std::uint32_t tail = 0, fetched = 0, head = 0, completed = 0;
    std::uint64_t sequence = 0;
    std::deque<Fetched> ahead;
    Kind kind = Kind::none;  // of the jobs in flight
    std::uint32_t jobs = 0;
    std::uint32_t unacknowledged = 0;  // completions
    bool depth_holds(std::uint32_t v) const {
      return v - head <= 1u << depth_log2 && v - tail <= 1u << depth_log2;
    }
    bool idle() const { return jobs == 0 && unacknowledged == 0 && (stopped || head == tail); }
  };
  struct Span {
    std::uint64_t base = 0, bytes = 0;
  };
  struct Job {
    std::uint32_t queue = 0;
    std::uint64_t cookie = 0;
    std::uint64_t elements = 0;
    std::uint32_t sequence = 0;  // of the descriptor, for the error registers
    FoldSetup fold;
    std::uint32_t destinations = 0;
    std::array<Span, PENSTOCK_MAX_DESTINATIONS> destination;
    std::vector<std::uint64_t> sources;
    penstock_descriptor record;
    Answer answer;                  // so far
    sc_core::sc_time acknowledged;  // of the latest write
  };
  struct SelectJob {
    std::uint32_t queue = 0;
    penstock_descriptor record;
  };
  // A WAIT, a BARRIER or a SIGNAL under way.
  struct Waiter {
    bool active = false;
    penstock_descriptor record;
    std::uint64_t line = 0;  // bus address of the next fence that has to be seen
    std::uint32_t remaining = 0, seen = 0;
    std::uint64_t value = 0;
    sc_core::sc_time deadline;
    std::uint64_t serial = 0;  // tells this one from an earlier one of the queue
  };
  // Results of a chunk on their way to the writer.
  struct Chunk {
    std::shared_ptr<Job> job;
    std::uint64_t offset = 0;  // of the chunk in the destination, bytes
    std::vector<std::uint8_t> bytes;
    sc_core::sc_time at;
    bool last = false;
    bool failed = false;  // a read failed: nothing to write
    Answer answer;
  };
  struct Transfer {
    bool ok = true;
    std::uint64_t bus = 0;  // of the burst that failed
  };
  // Thrown out of pause() when the card was reset meanwhile.
  struct WasReset {};

  // ---- card.cpp: registers, reset, time ----
  void register_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  bool read_register(std::uint32_t offset, std::uint32_t* value);
  bool write_register(std::uint32_t offset, std::uint32_t value);
  bool read_global(std::uint32_t offset, std::uint32_t* value);
  bool write_global(std::uint32_t offset, std::uint32_t value);
  std::uint32_t* error_word(std::uint32_t offset);
  void begin_reset();
  void report_error(CardError code, std::uint32_t queue, std::uint32_t sequence, std::uint64_t bus,
                    const penstock_descriptor& record);
  sc_core::sc_time cycles(std::uint64_t n) const { return static_cast<double>(n) * cycle_; }
  void pause(const sc_core::sc_time& time);
  void pause(std::uint64_t n) { pause(cycles(n)); }
  void pause_until(const sc_core::sc_time& time);
  void pause_for(const sc_core::sc_event& event);
  // Runs `action` then, unless the card is reset before.
  void later(const sc_core::sc_time& delay, std::function<void()> action);
  void run_due();
  // Runs the body again and again; a reset takes it back to its start. Never returns.
  void process(const std::function<void()>& body);

  // ---- transfers (card.cpp) ----
  // One burst or a small access; *delay grows by its latency.
  bool transport(bool on_data, bool write, std::uint64_t bus, void* bytes, std::uint64_t n,
                 sc_core::sc_time* delay);
  // As bursts that end at multiples of 4 KiB.
  Transfer transfer(bool on_data, bool write, std::uint64_t bus, void* bytes, std::uint64_t n,
                    sc_core::sc_time* delay);
  static std::uint64_t beats(std::uint64_t bus, std::uint64_t bytes) {
    return bytes == 0 ? 0 : (bus % 64 + bytes + 63) / 64;
  }

  // ---- command.cpp ----
  bool write_queue(std::uint32_t offset, std::uint32_t value);
  bool read_queue(std::uint32_t offset, std::uint32_t* value);
  bool write_window(std::uint32_t offset, std::uint32_t value);
  bool read_window(std::uint32_t offset, std::uint32_t* value);
  void ring_doorbell(std::uint32_t index, std::uint32_t tail);
  void fetch_process();
  bool fetch_one(std::uint32_t index);
  void command_process();
  bool is_ready(std::uint32_t index);
  void decode(std::uint32_t index, Fetched* fetched);
  void take(std::uint32_t index);
  Answer walk(std::uint32_t index, const penstock_descriptor& record, Job* job);
  Answer resolve(std::uint32_t index, penstock_address address, std::uint64_t bytes, bool write,
                 std::uint32_t field, std::uint64_t* bus);
  bool find_window(std::uint32_t index, penstock_address address, std::uint64_t bytes, bool write,
                   std::uint64_t* bus) const;
  Answer read_list(std::uint32_t index, const penstock_descriptor& record,
                   std::vector<penstock_address>* sources);
  static Answer overlap(const penstock_descriptor& record, const Job& job, const Span& source);
  void await_hazards(const Span& source);
  void begin_sync(std::uint32_t index, const penstock_descriptor& record);
  void complete(std::uint32_t index, std::uint64_t cookie, const Answer& answer,
                const penstock_descriptor& record);
  void write_completion(std::uint32_t index, const penstock_completion& completion,
                        const penstock_descriptor& record);
  // A job of the queue ended.
  void job_done(std::uint32_t index, std::uint64_t cookie, const Answer& answer,
                const penstock_descriptor& record);

  // ---- sync.cpp ----
  void poll(std::uint32_t index, std::uint64_t serial);
  void look(std::uint32_t index, std::uint64_t serial);
  void signal(std::uint32_t index, std::uint64_t fence, std::uint64_t value,
              std::function<void(const Answer&)> done);
  void end_wait(std::uint32_t index, const Answer& answer);
  void cancel_wait(std::uint32_t index);

  // ---- reduce.cpp ----
  void read_process();
  void write_process();
  void run_job(const std::shared_ptr<Job>& job);
  void write_chunk(Chunk* chunk);
  void end_job(const std::shared_ptr<Job>& job);

  // ---- select.cpp ----
  void select_process();

  const Timing timing_;
  const sc_core::sc_time cycle_;
  const sc_core::sc_time started_;

  // Registers.
  bool enabled_ = false;
  bool resetting_ = false;
  std::uint32_t clock_khz_ = 250000;
  std::uint64_t cause_ = 0, mask_ = 0;
  bool error_latched_ = false;
  std::uint32_t error_mask_ = 0;
  std::uint32_t error_code_ = 0, error_sequence_ = 0;
  std::uint64_t error_address_ = 0;
  std::array<std::uint32_t, 32> error_record_{};
  std::array<std::uint64_t, kCounters> counters_{};

  std::array<Queue, CardLimits::kQueues> queues_;
  std::array<std::array<Window, CardLimits::kWindows>, CardLimits::kQueues> windows_;
  std::array<Waiter, CardLimits::kQueues> waiters_;
  std::uint64_t wait_serial_ = 0;

  std::uint64_t epoch_ = 0;  // rises at a reset
  std::multimap<sc_core::sc_time, std::function<void()>> due_;
  sc_core::sc_event due_event_, fetch_event_, command_event_, job_event_, chunk_event_,
      select_event_, job_done_event_;

  std::uint32_t next_fetch_ = 0, next_queue_ = 0;
  std::deque<std::shared_ptr<Job>> jobs_;       // not yet begun
  std::deque<std::shared_ptr<Job>> in_flight_;  // begun or not, until acknowledged
  std::deque<Chunk> chunks_;
  sc_core::sc_time arrival_, write_free_, job_end_, completion_free_;
  std::deque<SelectJob> selects_;
  std::unique_ptr<Selector> selector_;
};

}  // namespace penstock::systemc
#endif
