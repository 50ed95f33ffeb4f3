// What a header, a program and a task have to hold, from the text of node_table.h; and what of that
// the card has no room or no logic for.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "penstock/descriptor/address.h"
#include "penstock/sim/systemc/table.h"

namespace penstock::systemc {
namespace {

constexpr std::uint32_t kOps = PENSTOCK_MAX_OPS;

bool is_score(std::uint32_t op) { return op >= 32; }

// FNV-1a with 64 bits over the words from version to n_counts, rows counted as 0.
std::uint64_t checksum_of(penstock_node_table header) {
  header.rows = 0;
  unsigned char bytes[offsetof(penstock_node_table, allocatable)];
  std::memcpy(bytes, &header, sizeof(bytes));
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = offsetof(penstock_node_table, version); i < sizeof(bytes); ++i) {
    hash ^= bytes[i];
    hash *= 0x100000001b3u;
  }
  return hash;
}

template <typename T>
bool within(T value, T least, T most) {
  return value >= least && value <= most;
}

// ---- operations ----

enum class List { none, resources, free_columns };
struct Rule {
  bool known = false;
  List list = List::none;
  std::uint32_t least = 0, most = 0;  // entries
  bool group = false, weights = false, skips = false;
  std::uint32_t scales = 0;  // 2: as many as there are entries
  bool negative = false;
  std::int64_t bound = 100;
};

Rule rule_of(std::uint32_t op) {
  constexpr auto kNone = List::none;
  constexpr auto kResources = List::resources;
  constexpr auto kFree = List::free_columns;
  switch (op) {
    case PENSTOCK_FILTER_BITS:
    case PENSTOCK_FILTER_DOMAINS:
      return {true, kNone, 0, 0, true};
    case PENSTOCK_FILTER_FIT:
      return {true, kResources, 0, 16};
    case PENSTOCK_FILTER_GPU:
    case PENSTOCK_FILTER_ROW:
      return {true};
    case PENSTOCK_SCORE_LEAST_ALLOCATED:
    case PENSTOCK_SCORE_MOST_ALLOCATED:
    case PENSTOCK_SCORE_RATIO:
      return {true, kResources, 0, 16, false, true, true};
    case PENSTOCK_SCORE_BALANCED:
      return {true, kResources, 0, 16, false, false, true};
    case PENSTOCK_SCORE_BITS:
      return {true, kNone, 0, 0, true, false, false, 0, true, std::int64_t{1} << 24};
    case PENSTOCK_SCORE_FEATURES:
      return {true, kFree, 0, 8, false, false, false, 0, true, std::int64_t{1} << 51};
    case PENSTOCK_SCORE_BEST_FIT:
      return {true, kResources, 0, 6, false, false, false, 2, true, std::int64_t{1} << 40};
    case PENSTOCK_SCORE_DOT_PRODUCT:
      return {true, kResources, 1, 6, false, false, false, 2, true, std::int64_t{1} << 40};
    case PENSTOCK_SCORE_GPU_PACKING:
    case PENSTOCK_SCORE_FGD:
      return {true, kResources, 1, 1};
    case PENSTOCK_SCORE_GPU_CLUSTERING:
      return {true, kFree, 0, 16, false, false, false, 1, true, std::int64_t{1} << 20};
    case PENSTOCK_SCORE_DOMAINS:
      return {true, kNone, 0, 0, true, false, false, 0, true, std::int64_t{1} << 46};
    case PENSTOCK_SCORE_SPREAD:
      return {true, kNone, 0, 0, true, false, false, 0, true, std::int64_t{1} << 36};
    default:
      return {};
  }
}

bool lists_are_right(const penstock_column_op& op, const Rule& rule,
                     const penstock_node_table& header) {
  const std::uint32_t columns = rule.list == List::resources      ? header.n_resources
                                : rule.list == List::free_columns ? header.n_free
                                                                  : 0;
  const std::uint32_t scales = rule.scales == 2 ? op.n : rule.scales;
  for (std::uint32_t i = 0; i < 16; ++i) {
    const bool used = i < op.n;
    if (used ? op.column[i] >= columns : op.column[i] != 0) return false;
    const bool weighs = used && rule.weights;
    if (weighs ? !within<int>(op.list_weight[i], 1, 100) : op.list_weight[i] != 0) return false;
  }
  for (std::uint32_t i = 0; i < 6; ++i)
    if (i < scales ? !within<std::int64_t>(op.scale[i], 1, PENSTOCK_MAX_QUANTITY)
                   : op.scale[i] != 0)
      return false;
  return op.n >= rule.least;
}

std::uint32_t check_op(const penstock_column_op& op, const penstock_node_table& header) {
  const Rule rule = rule_of(op.op);
  if (!rule.known || op.normalise > PENSTOCK_NORMALISE_SPREAD) return PENSTOCK_UNSUPPORTED;
  const std::uint64_t skips = rule.skips ? (std::uint64_t{1} << op.n) - 1 : 0;
  bool right = op.reserved == 0 && op.n <= rule.most && (rule.group || op.group == 0) &&
               (op.skip_unasked & ~skips) == 0;
  right = right && (is_score(op.op)
                        ? within<std::int64_t>(op.weight, -PENSTOCK_MAX_WEIGHT, PENSTOCK_MAX_WEIGHT)
                        : op.weight == 0 && op.normalise == PENSTOCK_NORMALISE_NONE);
  return right && lists_are_right(op, rule, header) ? PENSTOCK_OK : PENSTOCK_INVALID_ARGUMENT;
}

// How far a score may move the sum; at most 10^6 * 2^51, or, normalised, far less.
__extension__ typedef __int128 Wide;
Wide reach(const penstock_column_op& op) {
  const Rule rule = rule_of(op.op);
  std::int64_t bound = rule.bound;
  switch (op.normalise) {
    case PENSTOCK_NORMALISE_NONE:
      break;
    case PENSTOCK_NORMALISE_DEFAULT:
    case PENSTOCK_NORMALISE_REVERSED:
      bound = rule.negative ? PENSTOCK_MAX_NORMALISED : 100;
      break;
    default:
      bound = 100;
  }
  return Wide{bound} * (op.weight < 0 ? -std::int64_t{op.weight} : op.weight);
}

bool typicals_are_right(const penstock_program& program, const penstock_node_table& header) {
  if (program.n_typical > PENSTOCK_MAX_TYPICAL) return false;
  std::int64_t total = 0;
  for (std::uint32_t i = 0; i < program.n_typical; ++i) {
    const penstock_typical& t = program.typical[i];
    const bool gpus =
        t.gpu_count == 0 ? t.gpu_milli == 0 : within<std::uint32_t>(t.gpu_milli, 1, 1000);
    if (!gpus || t.gpu_count > PENSTOCK_MAX_GPUS || t.model >= header.n_bits ||
        !within<std::int64_t>(t.request, 0, PENSTOCK_MAX_REQUEST) || t.reserved[0] != 0 ||
        t.reserved[1] != 0 || t.reserved[2] != 0 ||
        !within<std::int64_t>(t.weight, 1, PENSTOCK_MAX_TYPICAL_WEIGHT))
      return false;
    total += t.weight;
    if (total > PENSTOCK_MAX_TYPICAL_WEIGHT) return false;
  }
  return std::is_sorted(std::begin(program.threshold), std::end(program.threshold));
}

bool rest_is_right(const penstock_program& program) {
  for (const std::uint8_t byte : program.reserved)
    if (byte != 0) return false;
  for (const std::uint64_t word : program.reserved3)
    if (word != 0) return false;
  for (std::uint32_t i = 0; i < sizeof(program.shape); ++i)
    if (program.shape[i] > (i <= 100 ? 100 : 0)) return false;
  return program.reserved2 == 0;
}

// ---- tasks ----

bool requests_are_right(const penstock_task& task, const penstock_node_table& header) {
  for (std::uint32_t r = 0; r < PENSTOCK_MAX_RESOURCES; ++r) {
    const std::int64_t most = r < header.n_resources ? PENSTOCK_MAX_REQUEST : 0;
    if (!within<std::int64_t>(task.request[r], 0, most) ||
        !within<std::int64_t>(task.scored_request[r], 0, most))
      return false;
  }
  return true;
}

bool terms_are_right(const penstock_task& task, const penstock_node_table& header) {
  if (task.n_terms > PENSTOCK_MAX_TERMS) return false;
  return std::all_of(task.terms, task.terms + task.n_terms, [&](const penstock_term& term) {
    return term.column < header.n_bits && term.clear <= 1 &&
           within<std::int64_t>(term.weight, -PENSTOCK_MAX_WEIGHT, PENSTOCK_MAX_WEIGHT);
  });
}

bool is_domain(std::uint16_t column, const penstock_node_table& header) {
  return column < header.n_domains || column == PENSTOCK_ROW_DOMAIN;
}

bool domain_terms_are_right(const penstock_task& task, const penstock_node_table& header) {
  if (task.n_domain_terms > PENSTOCK_MAX_DOMAIN_TERMS) return false;
  return std::all_of(task.domain_terms, task.domain_terms + task.n_domain_terms,
                     [&](const penstock_domain_term& t) {
                       return is_domain(t.domain, header) && t.count < header.n_counts &&
                              t.nodes < header.n_counts && t.kind <= 3 && t.self <= 1 &&
                              t.domains <= header.capacity && t.weight >= -PENSTOCK_MAX_WEIGHT &&
                              t.reserved == 0;
                     });
}

bool term_suits(const penstock_domain_term& term, const penstock_column_op& op,
                const penstock_node_table& header) {
  switch (op.op) {
    case PENSTOCK_SCORE_DOMAINS:
      return term.kind == 0 && term.weight <= PENSTOCK_MAX_WEIGHT;
    case PENSTOCK_SCORE_SPREAD:
      return term.weight >= 1 && header.n_domains > 0;
    case PENSTOCK_FILTER_DOMAINS:
      return term.kind < PENSTOCK_DOMAIN_SPREAD ||
             (term.kind == PENSTOCK_DOMAIN_SPREAD && term.weight >= 1);
    default:
      return true;
  }
}

bool raises_are_right(const penstock_task& task, const penstock_node_table& header) {
  if (task.n_raises > PENSTOCK_MAX_RAISES) return false;
  return std::all_of(task.raises, task.raises + task.n_raises, [&](const penstock_raise& raise) {
    return is_domain(raise.domain, header) && raise.count < header.n_counts &&
           raise.eligible < header.n_bits && raise.reserved == 0;
  });
}

bool changes_are_right(const penstock_task& task, const penstock_node_table& header) {
  for (const std::uint16_t bit : task.set_bits)
    if (bit != 0 && !within<std::uint32_t>(bit, PENSTOCK_BIT_FIRST_FREE, header.n_bits - 1))
      return false;
  for (const std::uint16_t count : task.count)
    if (count > header.n_free) return false;
  return true;
}

}  // namespace

std::uint32_t check_header(const penstock_node_table& h) {
  constexpr std::uint64_t kHeader = PENSTOCK_TABLE_HEADER_BYTES;
  // A table that says it is shorter than its header; what else it says does not matter then.
  if (h.bytes < kHeader) return PENSTOCK_OUT_OF_RANGE;
  const bool counts =
      within<std::uint32_t>(h.capacity, 64, PENSTOCK_MAX_ROWS) && h.capacity % 64 == 0 &&
      h.rows <= h.capacity && within<std::uint32_t>(h.n_resources, 1, PENSTOCK_MAX_RESOURCES) &&
      h.n_gpus <= PENSTOCK_MAX_GPUS &&
      within<std::uint32_t>(h.n_bits, 2, PENSTOCK_MAX_BIT_COLUMNS) &&
      h.n_free <= PENSTOCK_MAX_FREE_COLUMNS && h.n_domains <= PENSTOCK_MAX_DOMAIN_COLUMNS &&
      h.n_counts <= PENSTOCK_MAX_COUNT_COLUMNS;
  if (h.magic != PENSTOCK_TABLE_MAGIC || h.version != PENSTOCK_TABLE_VERSION || !counts ||
      h.header_bytes != kHeader)
    return PENSTOCK_CORRUPT;
  // Columns one after another; those of bits are packed, and what follows them starts on a line.
  const std::uint64_t column = std::uint64_t{h.capacity} * 8;
  std::uint64_t at = kHeader;
  const auto place = [&at](std::uint64_t bytes) {
    const std::uint64_t here = at;
    at += bytes;
    return here;
  };
  bool right = h.allocatable == place(h.n_resources * column);
  right = right && h.requested == place(h.n_resources * column);
  right = right && h.scored == place(h.n_resources * column);
  right = right && h.gpu == place(h.n_gpus * column);
  right = right && h.bits == place((std::uint64_t{h.n_bits} * h.capacity / 8 + 63) / 64 * 64);
  right = right && h.free == place(h.n_free * column);
  right = right && h.domain == place(h.n_domains * column / 2);
  right = right && h.count == place(h.n_counts * column / 2);
  right = right && h.logs == place(h.n_domains > 0 ? column + 64 : 0);
  return right && h.bytes == at && h.checksum == checksum_of(h) ? PENSTOCK_OK : PENSTOCK_CORRUPT;
}

std::uint32_t check_program(const penstock_program& program, const penstock_node_table& header,
                            std::uint64_t* detail) {
  *detail = kOps;
  if (program.magic != PENSTOCK_PROGRAM_MAGIC || program.version != PENSTOCK_PROGRAM_VERSION)
    return PENSTOCK_CORRUPT;
  if (program.n_ops > kOps || program.tie > PENSTOCK_TIE_HASH ||
      program.gpu_pick > PENSTOCK_GPU_FGD ||
      !within<std::uint32_t>(program.best, 1, PENSTOCK_MAX_BEST) ||
      !typicals_are_right(program, header) || !rest_is_right(program))
    return PENSTOCK_INVALID_ARGUMENT;
  Wide total = 0;
  bool scores = false;
  bool fgd = false;
  for (std::uint32_t i = 0; i < program.n_ops; ++i) {
    const penstock_column_op& op = program.ops[i];
    *detail = i;
    if (const std::uint32_t status = check_op(op, header); status != PENSTOCK_OK) return status;
    if (scores && !is_score(op.op)) return PENSTOCK_INVALID_ARGUMENT;
    if (!is_score(op.op)) continue;
    scores = true;
    fgd = fgd || op.op == PENSTOCK_SCORE_FGD;
    total += reach(op);
    if (total > PENSTOCK_MAX_SCORE) return PENSTOCK_INVALID_ARGUMENT;
  }
  *detail = kOps;
  if (program.gpu_pick == PENSTOCK_GPU_FGD && !fgd) return PENSTOCK_INVALID_ARGUMENT;
  *detail = 0;
  return PENSTOCK_OK;
}

std::uint32_t check_task(const penstock_task& task, const penstock_program& program,
                         const penstock_node_table& header) {
  bool right = requests_are_right(task, header) && terms_are_right(task, header) &&
               domain_terms_are_right(task, header) && raises_are_right(task, header) &&
               changes_are_right(task, header);
  for (std::uint32_t i = 0; i < program.n_ops && right; ++i)
    for (std::uint32_t t = 0; t < task.n_domain_terms; ++t)
      if (task.domain_terms[t].group == program.ops[i].group)
        right = right && term_suits(task.domain_terms[t], program.ops[i], header);
  right = right && task.gpu_count <= PENSTOCK_MAX_GPUS &&
          (task.gpu_count == 0 ? task.gpu_milli == 0
                               : within<std::uint32_t>(task.gpu_milli, 1, 1000)) &&
          within<std::int64_t>(task.row, -1, std::int64_t{PENSTOCK_MAX_ROWS} - 1) &&
          task.klass < PENSTOCK_MAX_RESOURCES &&
          std::all_of(std::begin(task.feature), std::end(task.feature), [](std::int64_t feature) {
            return within<std::int64_t>(feature, -PENSTOCK_MAX_FEATURE, PENSTOCK_MAX_FEATURE);
          });
  return right ? PENSTOCK_OK : PENSTOCK_INVALID_ARGUMENT;
}

// ---- the card's own limits ----

bool table_fits_card(const penstock_node_table& h) {
  return h.rows <= SelectLimits::kRows && h.n_resources <= SelectLimits::kResources &&
         h.n_bits <= SelectLimits::kBits && h.n_free <= SelectLimits::kFree;
}

namespace {

bool lacks(const penstock_column_op& op) {
  if (!is_score(op.op)) return (SelectLimits::kFilters >> op.op & 1) == 0;
  if ((SelectLimits::kScores >> (op.op - 32) & 1) == 0) return true;
  if (op.op == PENSTOCK_SCORE_BALANCED) return op.n > 2;
  return op.op == PENSTOCK_SCORE_FEATURES && op.normalise == PENSTOCK_NORMALISE_MIN_MAX_F64;
}

// The units that the lanes have, and how much of them a program takes. A step of a pass holds two
// entries of an allocation score, two scores of bits, one of features; a balanced one takes four.
class Units {
 public:
  // False: there is no room for it.
  bool place(const penstock_column_op& op) {
    const bool ranged = op.normalise != PENSTOCK_NORMALISE_NONE;
    switch (op.op) {
      case PENSTOCK_SCORE_LEAST_ALLOCATED:
      case PENSTOCK_SCORE_MOST_ALLOCATED: {
        constexpr std::uint32_t kPairs = 8, kRanged = 2;
        const std::uint32_t pairs = op.n <= 2 ? 1 : (op.n + 1u) / 2;
        if (pairs_ + pairs > kPairs || (ranged && ranged_allocations_ == kRanged)) return false;
        pairs_ += pairs;
        ranged_allocations_ += ranged ? 1 : 0;
        return true;
      }
      case PENSTOCK_SCORE_BITS: {
        constexpr std::uint32_t kScores = 14, kRanged = 4;
        if (bits_ == kScores || (ranged && bits_ >= kRanged)) return false;
        ++bits_;
        return true;
      }
      case PENSTOCK_SCORE_FEATURES: {
        constexpr std::uint32_t kScores = 4, kRanged = 2;
        if (features_ == kScores || (ranged && features_ >= kRanged)) return false;
        ++features_;
        return true;
      }
      default: {
        constexpr std::uint32_t kScores = 2;
        if (balanced_ == kScores) return false;
        ++balanced_;
        return true;
      }
    }
  }
  std::uint32_t steps() const {
    return std::max({pairs_, (bits_ + 1) / 2, features_, 4 * balanced_});
  }

 private:
  std::uint32_t pairs_ = 0, ranged_allocations_ = 0, bits_ = 0, features_ = 0, balanced_ = 0;
};

}  // namespace

bool program_suits_card(const penstock_program& program, std::uint64_t* detail,
                        Intervals* intervals) {
  for (std::uint32_t i = 0; i < program.n_ops; ++i) {
    *detail = i;
    if (lacks(program.ops[i])) return false;
  }
  // Normalised ones come first, so that the pass that finds their ranges is short.
  Units units;
  for (const bool ranged : {true, false}) {
    for (std::uint32_t i = 0; i < program.n_ops; ++i) {
      const penstock_column_op& op = program.ops[i];
      const bool takes_room =
          is_score(op.op) && op.op != PENSTOCK_SCORE_DOMAINS && op.op != PENSTOCK_SCORE_SPREAD;
      if (!takes_room || (op.normalise != PENSTOCK_NORMALISE_NONE) != ranged) continue;
      *detail = i;
      if (!units.place(op)) return false;
    }
    (ranged ? intervals->ranges : intervals->sums) = units.steps();
  }
  intervals->sums = std::max(intervals->sums, 1u);
  *detail = kOps;
  return (SelectLimits::kTies >> program.tie & 1) != 0;
}

bool task_suits_card(const penstock_task& task, const penstock_program& program, bool commit) {
  if (task.gpu_count != 0 || (commit && task.n_raises != 0)) return false;
  for (std::uint32_t i = 0; i < program.n_ops; ++i) {
    const penstock_column_op& op = program.ops[i];
    if (op.op != PENSTOCK_FILTER_DOMAINS && op.op != PENSTOCK_SCORE_DOMAINS &&
        op.op != PENSTOCK_SCORE_SPREAD)
      continue;
    for (std::uint32_t t = 0; t < task.n_domain_terms; ++t)
      if (task.domain_terms[t].group == op.group) return false;
  }
  return true;
}

}  // namespace penstock::systemc
