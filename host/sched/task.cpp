#include "penstock/sched/task.h"

namespace penstock {

Status add_term(Task* task, TermGroup group, std::uint16_t column, bool clear,
                std::int32_t weight) {
  if (task->record.n_terms == PENSTOCK_MAX_TERMS) {
    return error(Code::no_space, "task '{}' asks more than {} questions about nodes", task->name,
                 PENSTOCK_MAX_TERMS);
  }
  task->record.terms[task->record.n_terms++] = {column, static_cast<std::uint8_t>(group),
                                                static_cast<std::uint8_t>(clear ? 1 : 0), weight};
  return {};
}

}  // namespace penstock
