#include "penstock/drivers/card/identity.h"

#include "penstock/descriptor/node_table.h"
#include "penstock/descriptor/register_map.h"

namespace penstock::card {
namespace {

#define PENSTOCK_FIELD_OF(value, name) \
  (((value)&PENSTOCK_REGISTER_##name##_MASK) >> PENSTOCK_REGISTER_##name##_SHIFT)

constexpr std::uint32_t kMajor = PENSTOCK_FIELD_OF(PENSTOCK_REGISTER_VERSION_RESET, VERSION_MAJOR);

constexpr std::uint32_t below(std::uint32_t count) { return (1u << count) - 1; }

Status implausible(const char* what, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
  return error(Code::corrupt, "the card says that it has {} {}; it has to be {} to {}", value, what,
               min, max);
}

Status read_limits(Bus& bus, Identity* card) {
  const std::uint32_t limits = bus.read(PENSTOCK_REGISTER_CAP_LIMITS);
  const std::uint32_t bytes_log2 =
      PENSTOCK_FIELD_OF(bus.read(PENSTOCK_REGISTER_CAP_MAX_BYTES), CAP_MAX_BYTES_LOG2);
  Capabilities& c = card->capabilities;
  card->queues = PENSTOCK_FIELD_OF(limits, CAP_LIMITS_QUEUES);
  card->windows = PENSTOCK_FIELD_OF(limits, CAP_LIMITS_WINDOWS);
  c.max_sources = PENSTOCK_FIELD_OF(limits, CAP_LIMITS_SOURCES);
  c.max_destinations = PENSTOCK_FIELD_OF(limits, CAP_LIMITS_DESTINATIONS);
  if (card->queues == 0 || card->queues > PENSTOCK_REGISTER_QUEUE_COUNT)
    return implausible("queues", card->queues, 1, PENSTOCK_REGISTER_QUEUE_COUNT);
  if (card->windows == 0 || card->windows > PENSTOCK_REGISTER_WINDOW_COUNT2)
    return implausible("windows for a queue", card->windows, 1, PENSTOCK_REGISTER_WINDOW_COUNT2);
  if (c.max_sources == 0 || c.max_sources > PENSTOCK_MAX_SOURCES)
    return implausible("sources", c.max_sources, 1, PENSTOCK_MAX_SOURCES);
  if (c.max_destinations == 0 || c.max_destinations > PENSTOCK_MAX_DESTINATIONS)
    return implausible("destinations", c.max_destinations, 1, PENSTOCK_MAX_DESTINATIONS);
  if (bytes_log2 > 56) return implausible("bits in the length of an operand", bytes_log2, 0, 56);
  c.max_bytes = std::uint64_t{1} << bytes_log2;
  return {};
}

void read_types(Bus& bus, Capabilities* c) {
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    const std::uint32_t can = bus.read(PENSTOCK_REGISTER_CAP_TYPE_INT8 + 4 * type);
    c->redops[type] = PENSTOCK_FIELD_OF(can, CAP_TYPE_INT8_REDOPS) & below(PENSTOCK_REDOP_COUNT);
    c->out_types[type] = PENSTOCK_FIELD_OF(can, CAP_TYPE_INT8_OUT_TYPES);
  }
}

Status read_select(Bus& bus, Identity* card) {
  Capabilities& c = card->capabilities;
  SelectCapabilities& s = c.select;
  c.max_rows = bus.read(PENSTOCK_REGISTER_CAP_ROWS);
  if ((c.opcodes >> PENSTOCK_OP_SELECT & 1) == 0) c.max_rows = 0;
  if (c.max_rows > PENSTOCK_MAX_ROWS)
    return implausible("rows in a node table", c.max_rows, 0, PENSTOCK_MAX_ROWS);
  const std::uint32_t table = bus.read(PENSTOCK_REGISTER_CAP_TABLE);
  s.max_resources = PENSTOCK_FIELD_OF(table, CAP_TABLE_RESOURCES);
  s.max_free = PENSTOCK_FIELD_OF(table, CAP_TABLE_FREE);
  s.max_bits = PENSTOCK_FIELD_OF(table, CAP_TABLE_BITS);
  card->lanes = PENSTOCK_FIELD_OF(bus.read(PENSTOCK_REGISTER_CAP_LANES), CAP_LANES_LANES);
  const std::uint64_t scores = bus.read(PENSTOCK_REGISTER_CAP_SCORES);
  s.operations = bus.read(PENSTOCK_REGISTER_CAP_FILTERS) | scores << 32;
  for (std::uint32_t op = 0; op < 64; ++op)
    if (penstock_column_opcode_name(op)[0] == '?') s.operations &= ~(std::uint64_t{1} << op);
  const std::uint32_t more = bus.read(PENSTOCK_REGISTER_CAP_NORMALISE);
  s.normalisations =
      PENSTOCK_FIELD_OF(more, CAP_NORMALISE_NORMALISE) & below(PENSTOCK_NORMALISE_SPREAD + 1);
  s.ties = PENSTOCK_FIELD_OF(more, CAP_NORMALISE_TIE) & below(PENSTOCK_TIE_HASH + 1);
  s.max_best = PENSTOCK_FIELD_OF(more, CAP_NORMALISE_BEST);
  if (c.max_rows == 0) return {};
  if (s.max_resources == 0 || s.max_resources > PENSTOCK_MAX_RESOURCES)
    return implausible("resources of a node", s.max_resources, 1, PENSTOCK_MAX_RESOURCES);
  if (s.max_bits < PENSTOCK_BIT_FIRST_FREE || s.max_bits > PENSTOCK_MAX_BIT_COLUMNS)
    return implausible("bit columns", s.max_bits, PENSTOCK_BIT_FIRST_FREE,
                       PENSTOCK_MAX_BIT_COLUMNS);
  if (s.max_best == 0 || s.max_best > PENSTOCK_MAX_BEST)
    return implausible("rows in a result", s.max_best, 1, PENSTOCK_MAX_BEST);
  return {};
}

}  // namespace

Result<Identity> read_identity(Bus& bus) {
  const std::uint32_t id = bus.read(PENSTOCK_REGISTER_ID);
  if (id == kNoAnswer) return error(Code::io_error, "nothing answers at {}", bus.description());
  if (id != PENSTOCK_REGISTER_ID_RESET)
    return error(Code::unsupported,
                 "what answers at {} is no card of Penstock: its ID is {:#x}, not {:#x}",
                 bus.description(), id, PENSTOCK_REGISTER_ID_RESET);
  Identity card;
  card.version = bus.read(PENSTOCK_REGISTER_VERSION);
  if (PENSTOCK_FIELD_OF(card.version, VERSION_MAJOR) != kMajor)
    return error(Code::unsupported,
                 "the card at {} has version {:#x} of the register map; this driver knows {}.x",
                 bus.description(), card.version, kMajor);
  Capabilities& c = card.capabilities;
  c.name = "card";
  c.description = bus.description();
  c.opcodes = bus.read(PENSTOCK_REGISTER_CAP_OPCODES) & below(PENSTOCK_OP_COUNT);
  PENSTOCK_TRY(read_limits(bus, &card));
  read_types(bus, &c);
  PENSTOCK_TRY(read_select(bus, &card));
  return card;
}

}  // namespace penstock::card
