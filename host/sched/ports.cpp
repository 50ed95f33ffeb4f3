#include "penstock/sched/ports.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr const char* kEveryAddress = "0.0.0.0";

Result<std::uint16_t> column_of(NodeTable* table, const HostPort& port,
                                const std::string& address) {
  return table->state_column(fmt::format("port {} {} {}", port.protocol, port.port, address));
}

void add_once(std::vector<std::uint16_t>* columns, std::uint16_t column) {
  if (std::find(columns->begin(), columns->end(), column) == columns->end()) {
    columns->push_back(column);
  }
}

}  // namespace

bool conflict(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol &&
         (a.ip == b.ip || a.ip == kEveryAddress || b.ip == kEveryAddress);
}

Result<std::vector<std::uint16_t>> port_columns(NodeTable* table,
                                                const std::vector<HostPort>& ports) {
  std::vector<std::uint16_t> columns;
  for (const HostPort& port : ports) {
    PENSTOCK_ASSIGN(const std::uint16_t some, column_of(table, port, "some address"));
    PENSTOCK_ASSIGN(const std::uint16_t own, column_of(table, port, port.ip));
    add_once(&columns, some);
    add_once(&columns, own);
  }
  return columns;
}

Status add_port_terms(NodeTable* table, const std::vector<HostPort>& ports, Task* task) {
  PENSTOCK_ASSIGN(const std::vector<std::uint16_t> columns, port_columns(table, ports));
  if (columns.size() > std::size(task->record.set_bits)) {
    return error(Code::unsupported, "task '{}' asks for {} host ports, at most {} are placed",
                 task->name, ports.size(), kMaxTaskPorts);
  }
  std::copy(columns.begin(), columns.end(), task->record.set_bits);
  std::vector<std::uint16_t> asked;
  for (const HostPort& port : ports) {
    if (port.ip == kEveryAddress) {
      PENSTOCK_ASSIGN(const std::uint16_t some, column_of(table, port, "some address"));
      add_once(&asked, some);
      continue;
    }
    PENSTOCK_ASSIGN(const std::uint16_t own, column_of(table, port, port.ip));
    PENSTOCK_ASSIGN(const std::uint16_t every, column_of(table, port, kEveryAddress));
    add_once(&asked, own);
    add_once(&asked, every);
  }
  for (const std::uint16_t column : asked) {
    PENSTOCK_TRY(add_term(task, TermGroup::ports, column, true));
  }
  return {};
}

std::string port_text(const HostPort& port) {
  return fmt::format("{} {}{}", port.protocol, port.port,
                     port.ip == kEveryAddress ? "" : " on " + port.ip);
}

}  // namespace penstock
