#include "penstock/comm/plan_contents.h"

#include <fmt/core.h>

namespace penstock::checker {

std::string Expressions::describe(const Content& content, std::uint64_t position) const {
  const Expression& expression = table_[content.expression];
  if (expression.terms.empty()) return "nothing";
  const std::int64_t base = static_cast<std::int64_t>(position) + content.shift;
  if (!expression.is_fold) {
    const Term& term = expression.terms.front();
    return fmt::format("byte {} of part {} of rank {} (call {})", base + term.offset, term.part,
                       term.rank, term.call);
  }
  std::string text = "the fold of";
  for (const Term& term : expression.terms) {
    if (term.inner != 0) {
      const Content inner{term.inner, term.offset + content.shift};
      text += fmt::format("{} ({})", &term == &expression.terms.front() ? "" : ",",
                          describe(inner, position));
      continue;
    }
    text += fmt::format("{} rank {} part {} byte {}", &term == &expression.terms.front() ? "" : ",",
                        term.rank, term.part, base + term.offset);
  }
  return fmt::format("{} (call {})", text, expression.terms.front().call);
}

}  // namespace penstock::checker
