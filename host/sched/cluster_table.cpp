// The table of a cluster: made, grown, and kept with what there is.
#include <algorithm>

#include "penstock/base/log.h"
#include "penstock/sched/cluster_state.h"

namespace penstock {
namespace {

// While there may be more columns, those that were used in so many decisions are not evicted.
constexpr std::uint64_t kKeptDecisions = 256;

bool grow(std::uint32_t* columns, std::uint32_t most) {
  if (*columns >= most) return false;
  *columns = std::min(*columns * 2, most);
  return true;
}

}  // namespace

Status Cluster::State::usable() const {
  if (table != nullptr) return {};
  return error(Code::io_error, "the node table '{}' was lost when it had to be made anew",
               config.table_name);
}

std::uint64_t Cluster::State::version() const {
  std::uint64_t sum = changed + classes.version() + nodes_changed;
  if (table != nullptr) sum += table->catalogue().last_serial() + table->catalogue().evictions();
  return sum;
}

std::int32_t Cluster::State::row_of(const std::string& node) const {
  return table->catalogue().find_node(node);
}

NodeSpec Cluster::State::spec_of(const KubernetesNode& node) const {
  NodeSpec spec;
  spec.facts = node.facts;
  spec.unschedulable = node.unschedulable;
  for (const ResourceName& resource : resources) {
    const auto amount = node.allocatable.find(resource.name);
    spec.allocatable.push_back(amount == node.allocatable.end() ? 0 : amount->second);
  }
  return spec;
}

void Cluster::State::keep_columns() {
  const bool may_grow = bit_columns < PENSTOCK_MAX_BIT_COLUMNS &&
                        domain_columns < PENSTOCK_MAX_DOMAIN_COLUMNS &&
                        count_columns < PENSTOCK_MAX_COUNT_COLUMNS;
  table->keep_batches(may_grow ? kKeptDecisions : 1);
}

Status Cluster::State::make_table(std::unique_ptr<NodeTable>* out) {
  NodeTableConfig geometry;
  geometry.name = config.table_name;
  geometry.capacity = capacity;
  geometry.resources = resources;
  geometry.bit_columns = bit_columns;
  geometry.domain_columns = domain_columns;
  geometry.count_columns = count_columns;
  PENSTOCK_ASSIGN(*out, NodeTable::create(config.pool, engine, geometry));
  return {};
}

// `order`: the names of the nodes, row by row.
Status Cluster::State::fill_table(const std::vector<std::string>& order) {
  columns.use(table.get(), ++tables_made);
  keep_columns();
  std::vector<NodeSpec> specs;
  specs.reserve(order.size());
  for (const std::string& name : order) specs.push_back(spec_of(nodes.at(name)));
  PENSTOCK_TRY(table->add_nodes(specs));
  for (const std::string& name : order) {
    columns.set_row(static_cast<std::uint32_t>(row_of(name)), &pods_of[name]);
  }
  for (auto& [key, placed] : pods) PENSTOCK_TRY(occupy(&placed, 1));
  return table->save();
}

Status Cluster::State::rebuild() {
  // The rows keep their order, so that what goes by the lowest row does not change.
  std::vector<std::string> order = names_by_row();
  if (table == nullptr) {
    for (const auto& [name, node] : nodes) order.push_back(name);
    std::sort(order.begin(), order.end());
  } else {
    changed += table->catalogue().last_serial() + table->catalogue().evictions() + 1;
  }
  const bool by_name = config.pool != nullptr && !config.table_name.empty();
  if (by_name && table != nullptr) {
    // There is one region of a name: the old one goes first.
    table.reset();
    PENSTOCK_TRY(NodeTable::destroy(*config.pool, config.table_name));
  }
  std::unique_ptr<NodeTable> made;
  Status created = make_table(&made);
  if (!created.ok() && by_name) {
    // Better a table that others do not see than none: the old one is gone.
    log::warn("node table '{}': {}; it stands in this process's memory from here on",
              config.table_name, created.message());
    config.pool = nullptr;
    created = make_table(&made);
  }
  PENSTOCK_TRY(created);
  std::unique_ptr<NodeTable> old = std::exchange(table, std::move(made));
  const CountColumns before = columns;
  Status status = fill_table(order);
  if (status.ok()) return status;
  full_in_rebuild = table->catalogue().full();
  table = std::move(old);
  columns = before;
  return status;
}

std::vector<std::string> Cluster::State::names_by_row() const {
  std::vector<std::string> names;
  for (std::uint32_t row = 0; table != nullptr && row < table->rows(); ++row) {
    if (table->holds_node(row)) names.push_back(table->catalogue().node(row).name);
  }
  return names;
}

Status Cluster::State::reserve_row() {
  if (table->catalogue().node_count() < table->header().capacity) return {};
  if (capacity >= PENSTOCK_MAX_ROWS) {
    return error(Code::no_space, "a node table has at most {} rows", PENSTOCK_MAX_ROWS);
  }
  const std::uint32_t before = capacity;
  capacity = std::min(table->header().capacity * 2, PENSTOCK_MAX_ROWS);
  Status status = rebuild();
  if (!status.ok()) capacity = before;
  return status;
}

Status Cluster::State::reserve_resources(const Amounts& amounts, const std::string& who) {
  std::vector<ResourceName> more;
  for (const auto& [name, amount] : amounts) {
    const auto known =
        std::find_if(resources.begin(), resources.end(),
                     [&, wanted = &name](const ResourceName& r) { return r.name == *wanted; });
    if (amount <= 0 || known != resources.end()) continue;
    more.push_back({name, name.starts_with("hugepages-") ? "bytes" : ""});
  }
  if (more.empty()) return {};
  if (resources.size() + more.size() > PENSTOCK_MAX_RESOURCES) {
    return error(Code::unsupported,
                 "{} asks for '{}', and {} kinds of resources are counted already", who,
                 more.front().name, resources.size());
  }
  const std::vector<ResourceName> before = resources;
  resources.insert(resources.end(), more.begin(), more.end());
  if (table == nullptr) return {};
  Status status = rebuild();
  if (!status.ok()) resources = before;
  return status;
}

Status Cluster::State::more_columns(const Status& full) {
  if (full.code() != Code::no_space) return full;
  const std::uint32_t bits = bit_columns, domains = domain_columns, counts = count_columns;
  Catalogue::Kind kind = table->catalogue().full();
  Status status = full;
  // What is there may need more than twice as many.
  while (status.code() == Code::no_space) {
    bool more = false;
    if (kind == Catalogue::Kind::bits) more = grow(&bit_columns, PENSTOCK_MAX_BIT_COLUMNS);
    if (kind == Catalogue::Kind::domains) more = grow(&domain_columns, PENSTOCK_MAX_DOMAIN_COLUMNS);
    if (kind == Catalogue::Kind::counts) more = grow(&count_columns, PENSTOCK_MAX_COUNT_COLUMNS);
    if (!more) break;
    status = rebuild();
    kind = full_in_rebuild;
  }
  if (status.ok()) {
    log::debug("node table '{}': now {} bit, {} domain and {} count columns", config.table_name,
               bit_columns, domain_columns, count_columns);
  } else {
    bit_columns = bits;
    domain_columns = domains;
    count_columns = counts;
  }
  return status;
}

}  // namespace penstock
