#include "penstock/sched/explain_domains.h"

#include <functional>

namespace penstock {
namespace {

// One term of a filter on one row.
struct Asked {
  std::string topology;  // the label, "" where every row is a domain
  std::int32_t domain = -1;
  std::int64_t count = 0;
  std::int64_t least = 0;
  bool passes = false;
  bool by_others = false;  // terms of pods that are placed about this one
};

Asked ask(const NodeTable& table, const DecisionContext& context, std::uint32_t i,
          std::uint32_t row) {
  const penstock_domain_term& term = context.task.domain_terms[i];
  const TableView& cells = context.table;
  Asked out;
  if (term.domain != PENSTOCK_ROW_DOMAIN) {
    out.topology = table.catalogue().domain_column(term.domain).key.substr(1);
  }
  out.domain = cells.domain_of(term.domain, row);
  if (out.domain >= 0) out.count = cells.count_column(term.count)[out.domain];
  out.least = context.terms[i].least;
  out.by_others = table.catalogue().count_column(term.count).key.starts_with("pods carry ");
  switch (term.kind) {
    case PENSTOCK_DOMAIN_PRESENT:
      out.passes = out.domain >= 0 && (out.count > 0 || context.terms[i].may_be_first);
      break;
    case PENSTOCK_DOMAIN_SPREAD:
      out.passes = out.domain >= 0 && out.count + term.self - out.least <= term.weight;
      break;
    default:
      out.passes = out.count == 0;
  }
  return out;
}

void each(const NodeTable& table, const DecisionContext& context, const penstock_column_op& op,
          std::uint32_t row,
          const std::function<void(const penstock_domain_term&, const Asked&)>& visit) {
  for (std::uint32_t i = 0; i < context.task.n_domain_terms; ++i) {
    if (context.task.domain_terms[i].group != op.group) continue;
    visit(context.task.domain_terms[i], ask(table, context, i, row));
  }
}

}  // namespace

std::string domains_numbers(const NodeTable& table, const DecisionContext& context,
                            const penstock_column_op& op, std::uint32_t row) {
  std::string out;
  each(table, context, op, row, [&](const penstock_domain_term& term, const Asked& asked) {
    out += out.empty() ? "" : "; ";
    out += asked.topology.empty() ? "this node" : asked.topology;
    if (asked.domain < 0) {
      out += ": no such label";
    } else if (term.kind == PENSTOCK_DOMAIN_SPREAD) {
      out += fmt::format(": {} + {} - {} {} {}", asked.count, term.self, asked.least,
                         asked.passes ? "<=" : ">", term.weight);
    } else if (term.kind == PENSTOCK_DOMAIN_PRESENT) {
      out += fmt::format(": {} wanted{}", asked.count,
                         asked.count == 0 && asked.passes ? ", it is the first" : "");
    } else {
      out += fmt::format(": {} {}", asked.count, asked.by_others ? "shun it" : "shunned");
    }
  });
  return out;
}

std::string domains_reason(const NodeTable& table, const DecisionContext& context,
                           const penstock_column_op& op, std::uint32_t row) {
  std::string out;
  each(table, context, op, row, [&](const penstock_domain_term& term, const Asked& asked) {
    if (!out.empty() || asked.passes) return;
    const std::string where = asked.topology.empty() ? "this node" : asked.topology;
    if (term.kind == PENSTOCK_DOMAIN_SPREAD) {
      out = asked.domain < 0
                ? fmt::format("topology spread, no label: {}", where)
                : fmt::format(
                      "topology spread: by {} there are {}, with this pod {}, and the "
                      "least is {}: at most {} more",
                      where, asked.count, asked.count + term.self, asked.least, term.weight);
    } else if (term.kind == PENSTOCK_DOMAIN_PRESENT) {
      out = asked.domain < 0 ? fmt::format("pod affinity, no label: {}", where)
                             : fmt::format("pod affinity: by {} there is none", where);
    } else {
      out = fmt::format("{}: by {} there are {}",
                        asked.by_others ? "anti-affinity of other pods" : "pod anti-affinity",
                        where, asked.count);
    }
  });
  return out;
}

}  // namespace penstock
