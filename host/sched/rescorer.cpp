#include "penstock/sched/rescorer.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "penstock/descriptor/descriptor.h"

namespace penstock {
namespace {

constexpr std::size_t kMaxPrograms = 32;
constexpr std::uint64_t kTryAgainAfter = 4096;  // decisions by scan, when a class had given up

// What a row costs, about, in a scan with vector instructions, when a class looks at all of them,
// and when it looks at one out of the blue. Only the ratios matter.
constexpr std::uint64_t kScanNs = 6;
constexpr std::uint64_t kRebuildNs = 60;
constexpr std::uint64_t kRefreshNs = 80;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ (hash >> 29);
}

template <typename T>
std::uint64_t hash_of(std::uint64_t hash, const T* records, std::uint32_t n) {
  static_assert(sizeof(T) % sizeof(std::uint64_t) == 0);
  for (std::uint32_t i = 0; i < n; i++) {
    std::uint64_t words[sizeof(T) / sizeof(std::uint64_t)];
    std::memcpy(words, records + i, sizeof(T));
    for (const std::uint64_t word : words) hash = mix(hash, word);
  }
  return hash;
}

// Of what most often tells tasks apart; what it leaves out, same_class() compares.
std::uint64_t class_hash(const penstock_task& task) {
  std::uint64_t hash = mix(task.gpu_count, task.gpu_milli);
  hash = hash_of(hash, task.request, 4);
  hash = hash_of(hash, task.terms, std::min(task.n_terms, PENSTOCK_MAX_TERMS));
  return hash_of(hash, task.domain_terms, std::min(task.n_domain_terms, PENSTOCK_MAX_DOMAIN_TERMS));
}

// Whether the records are equal apart from `tie`.
bool same_class(const penstock_task& a, const penstock_task& b) {
  constexpr std::size_t kTie = offsetof(penstock_task, tie);
  constexpr std::size_t kAfter = kTie + sizeof(a.tie);
  const auto* left = reinterpret_cast<const unsigned char*>(&a);
  const auto* right = reinterpret_cast<const unsigned char*>(&b);
  return std::memcmp(left, right, kTie) == 0 &&
         std::memcmp(left + kAfter, right + kAfter, sizeof(a) - kAfter) == 0;
}

// Whether the programs are equal in what is read of them.
bool same_program(const penstock_program& a, const penstock_program& b) {
  return std::memcmp(&a, &b, offsetof(penstock_program, ops)) == 0 &&
         std::memcmp(
             a.ops, b.ops,
             std::min<std::size_t>(a.n_ops, PENSTOCK_MAX_OPS) * sizeof(penstock_column_op)) == 0 &&
         std::memcmp(a.shape, b.shape, sizeof a.shape) == 0 &&
         std::memcmp(a.typical, b.typical,
                     std::min<std::size_t>(a.n_typical, PENSTOCK_MAX_TYPICAL) *
                         sizeof(penstock_typical)) == 0;
}

}  // namespace

struct Rescorer::ProgramEntry {
  penstock_program record;
  std::uint32_t uses = 0;  // by kept classes
};

struct Rescorer::Kept {
  ProgramEntry* program;
  penstock_task task;
  std::uint64_t hash;
  std::unique_ptr<TaskClass> rows;  // null: scanned so far
  std::uint64_t seen = 0;           // entries of the log that `rows` knows
  std::uint64_t scans = 0;
  std::uint64_t next_try = 0;  // no class before so many scans
  std::uint64_t spent_ns = 0;  // on scans since the class was last up to date
};

Rescorer::Rescorer(const TableView& table, const Kernels& kernels, const RescorerOptions& options)
    : table_(table),
      kernels_(kernels),
      options_(options),
      domains_(table),
      rows_(table.header->rows) {
  options_.classes = std::max(options_.classes, 1u);
  log_.resize(std::bit_ceil(std::max(table.header->capacity / 2, 1024u)));
  last_change_.resize(table.header->capacity);
}

Rescorer::~Rescorer() = default;

// ---- classes ----

Result<Rescorer::ProgramEntry*> Rescorer::find_program(const penstock_program& program) {
  if (last_program_ != nullptr && same_program(last_program_->record, program))
    return last_program_;
  for (const auto& entry : programs_) {
    if (!same_program(entry->record, program)) continue;
    last_program_ = entry.get();
    last_ = nullptr;
    return entry.get();
  }
  std::uint64_t detail = 0;
  const std::uint32_t verdict = penstock_program_check(&program, table_.header, &detail);
  if (verdict != PENSTOCK_OK) {
    return error(static_cast<Code>(verdict), "the program is not one for this node table: op {}",
                 detail);
  }
  if (programs_.size() >= kMaxPrograms) {
    programs_.remove_if(
        [this](const auto& entry) { return entry->uses == 0 && entry.get() != last_program_; });
  }
  programs_.push_front(std::make_unique<ProgramEntry>());
  programs_.front()->record = program;
  last_program_ = programs_.front().get();
  last_ = nullptr;
  return last_program_;
}

Result<Rescorer::Kept*> Rescorer::find(ProgramEntry* entry, const penstock_task& task) {
  if (last_ != nullptr && same_class(last_->task, task)) return last_;
  const std::uint64_t hash = class_hash(task);
  last_ = find_task(entry, task, hash);
  if (last_ == nullptr) {
    if (penstock_task_check(&task, &entry->record, table_.header) != PENSTOCK_OK) {
      return error(Code::invalid_argument,
                   "the task does not fit the node table and the program: a value is out of its "
                   "range, or a column is not there");
    }
    last_ = add_task(entry, task, hash);
  }
  return last_;
}

Rescorer::Kept* Rescorer::find_task(ProgramEntry* program, const penstock_task& task,
                                    std::uint64_t hash) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    Kept& kept = *it->second;
    if (kept.program != program || !same_class(kept.task, task)) continue;
    kept_.splice(kept_.begin(), kept_, it->second);
    return &kept;
  }
  return nullptr;
}

Rescorer::Kept* Rescorer::add_task(ProgramEntry* program, const penstock_task& task,
                                   std::uint64_t hash) {
  kept_.emplace_front();
  Kept& kept = kept_.front();
  kept.program = program;
  kept.task = task;
  kept.hash = hash;
  program->uses++;
  by_hash_.emplace(hash, kept_.begin());
  return &kept;
}

void Rescorer::drop_idle() {
  while (kept_.size() > options_.classes) drop(std::prev(kept_.end()));
}

void Rescorer::drop(std::list<Kept>::iterator kept) {
  const auto [begin, end] = by_hash_.equal_range(kept->hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second != kept) continue;
    by_hash_.erase(it);
    break;
  }
  kept->program->uses--;
  if (last_ == &*kept) last_ = nullptr;
  kept_.erase(kept);
}

std::uint64_t Rescorer::bytes() const {
  std::uint64_t sum = log_.size() * sizeof(Change) + last_change_.size() * sizeof(std::uint64_t);
  for (const Kept& kept : kept_) sum += sizeof(Kept) + (kept.rows ? kept.rows->bytes() : 0);
  return sum;
}

// Classes that were not asked for longest go to scanning until the rest is within the bound.
void Rescorer::make_room(const Kept* except) {
  std::uint64_t sum = bytes();
  for (auto it = kept_.rbegin(); it != kept_.rend() && sum > options_.bytes; ++it) {
    if (!it->rows || &*it == except) continue;
    sum -= it->rows->bytes();
    it->rows.reset();
  }
}

// Whether the class knows the table as it is now; false: scan. It catches up once that costs no
// more than the scans that were made instead.
bool Rescorer::ready(Kept* kept) {
  if (kept->rows && kept->seen == end_) return true;
  if (!kept->rows && kept->scans < kept->next_try) return false;
  if (options_.scan_first) {
    const std::uint64_t rebuild_ns = rows_ * kRebuildNs;
    const bool follows = kept->rows && kept->seen >= forgotten_;
    const std::uint64_t price_ns =
        follows ? std::min((end_ - kept->seen) * kRefreshNs, rebuild_ns) : rebuild_ns;
    const std::uint64_t scan_ns = rows_ * kScanNs;
    if (price_ns > scan_ns && price_ns > kept->spent_ns) {
      kept->spent_ns += scan_ns;
      return false;
    }
  }
  kept->spent_ns = 0;
  if (!kept->rows) {
    kept->rows = std::make_unique<TaskClass>(table_, kept->program->record, kept->task, &domains_,
                                             options_.limits);
    kept->seen = end_;
    if (kept->rows->usable()) {
      kept->rows->rebuild();
      counters_.rebuilds++;
      make_room(kept);
    }
  } else {
    catch_up(kept);
  }
  if (kept->rows->usable()) return true;
  kept->rows.reset();
  kept->next_try = kept->scans + kTryAgainAfter;
  return false;
}

void Rescorer::catch_up(Kept* kept) {
  TaskClass& rows = *kept->rows;
  const std::uint64_t behind = end_ - kept->seen;
  if (kept->seen < forgotten_ || behind > log_.size() ||
      behind * kRefreshNs > (rows_ + 64) * kRebuildNs) {
    rows.rebuild();
    counters_.rebuilds++;
    kept->seen = end_;
    return;
  }
  for (std::uint64_t i = kept->seen; i < end_ && rows.usable(); i++)
    work_off(log_[i & (log_.size() - 1)], i, &rows);
  counters_.refreshes += behind;
  kept->seen = end_;
}

void Rescorer::work_off(const Change& change, std::uint64_t number, TaskClass* rows) {
  switch (change.what) {
    case What::cells:
    case What::all:
      // A later entry stands for this one, too.
      if (last_change_[change.index] == number + 1)
        rows->refresh(change.index, change.what == What::all);
      return;
    case What::bit:
      if (rows->uses_bits(change.column)) rows->refresh(change.index, true);
      return;
    case What::count:
      rows->refresh_count(change.column, change.index);
      return;
    case What::bits:
    case What::counts:
      if (change.what == What::bits ? !rows->uses_bits(change.column)
                                    : !rows->uses_counts(change.column))
        return;
      rows->rebuild();
      counters_.rebuilds++;
      return;
    case What::nothing:
      return;
  }
}

Status Rescorer::select(const penstock_program& program, std::span<const penstock_task> tasks,
                        bool commit, penstock_result* results) {
  PENSTOCK_ASSIGN(ProgramEntry* const entry, find_program(program));
  if (table_.header->rows != rows_) note_rows(table_.header->rows);
  drop_idle();
  batch_.resize(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); i++) {
    const Result<Kept*> kept = find(entry, tasks[i]);
    if (!kept.ok()) {
      return kept.status().with_context(fmt::format("task {} of {}", i, tasks.size()));
    }
    batch_[i] = kept.value();
  }
  for (std::size_t i = 0; i < tasks.size(); i++) place(batch_[i], tasks[i], commit, &results[i]);
  return {};
}

void Rescorer::place(Kept* kept, const penstock_task& task, bool commit, penstock_result* result) {
  counters_.decisions++;
  if (ready(kept)) {
    *result = {};
    kept->rows->choose(task.tie, result);
    scalar_finish(table_, kept->program->record, task, commit, result);
  } else {
    counters_.scans++;
    kept->scans++;
    kernels_.select(table_, kept->program->record, task, commit, result);
  }
  if (commit && result->status == PENSTOCK_OK)
    task_changed(static_cast<std::uint32_t>(result->row), kept->task);
}

// ---- the log ----

void Rescorer::note(Change change) {
  if (change.what == What::cells || change.what == What::all) {
    std::uint64_t& last = last_change_[change.index];
    // An earlier entry of the row is passed over from here on, so this one stands for both.
    if (last != 0 && end_ - (last - 1) <= log_.size() &&
        log_[(last - 1) & (log_.size() - 1)].what == What::all)
      change.what = What::all;
    last = end_ + 1;
    if (change.what == What::all) domains_.row_changed(change.index);
  }
  log_[end_++ & (log_.size() - 1)] = change;
}

void Rescorer::row_changed(std::uint32_t row) { note({row, 0, What::all}); }

void Rescorer::count_changed(std::uint32_t column, std::uint32_t domain) {
  note({domain, static_cast<std::uint16_t>(column), What::count});
}

void Rescorer::task_changed(std::uint32_t row, const penstock_task& task) {
  for (std::uint32_t i = 0; i < task.n_raises; i++) {
    const std::int32_t domain = table_.domain_of(task.raises[i].domain, row);
    if (domain >= 0) count_changed(task.raises[i].count, static_cast<std::uint32_t>(domain));
  }
  const bool bits = std::any_of(std::begin(task.set_bits), std::end(task.set_bits),
                                [](std::uint16_t column) { return column != 0; });
  note({row, 0, bits ? What::all : What::cells});
}

void Rescorer::note_rows(std::uint32_t rows) {
  for (std::uint32_t row = std::min(rows, rows_); row < std::max(rows, rows_); row++)
    row_changed(row);
  rows_ = rows;
}

void Rescorer::table_changed() {
  rows_ = table_.header->rows;
  domains_.clear();
  end_++;
  log_[(end_ - 1) & (log_.size() - 1)] = {0, 0, What::nothing};
  forgotten_ = end_;
}

void Rescorer::updated(std::span<const penstock_update> updates) {
  constexpr std::size_t kMany = 64;
  std::uint32_t last = UINT32_MAX;  // the row that was noted as a whole
  for (std::size_t i = 0; i < updates.size();) {
    const penstock_update& update = updates[i];
    const bool bit = update.field == PENSTOCK_UPDATE_BIT;
    const bool count = update.field == PENSTOCK_UPDATE_COUNT;
    std::size_t end = i + 1;
    while ((bit || count) && end < updates.size() && updates[end].field == update.field &&
           updates[end].column == update.column)
      end++;
    const auto column = static_cast<std::uint16_t>(update.column);
    const bool more_of_row = i + 1 < updates.size() && updates[i + 1].row == update.row;
    if (end - i > kMany) {
      note({0, column, bit ? What::bits : What::counts});
      i = end;
      continue;
    }
    if (update.field == PENSTOCK_UPDATE_ROWS) {
      note_rows(table_.header->rows);
    } else if (count) {
      count_changed(update.column, update.row);
    } else if (update.row != last) {
      // Lists name the cells of a row one after another.
      if (bit && !more_of_row) {
        note({update.row, column, What::bit});
      } else {
        row_changed(update.row);
        last = update.row;
      }
    }
    i++;
  }
}

}  // namespace penstock
