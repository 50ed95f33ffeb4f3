#include "penstock/sched/quantity.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/csv.h"

namespace penstock {
namespace {

// A value: digits * 2^binary * 10^decimal, or with `more` up to one digit above that. With at most
// 19 digits and a binary exponent of at most 60, digits * 2^binary fits into 128 bits. Whatever is
// in range is below 10^19, so that what follows 19 digits is a fraction, which rounds up.
struct Exact {
  std::uint64_t digits = 0;
  int binary = 0;
  int decimal = 0;
  bool negative = false;
  bool more = false;  // only with binary 0
};
constexpr int kMaxDigits = 19;
constexpr int kMaxExponent = 100000;  // beyond it, more makes no difference to what fits

Status wrong(std::string_view text) {
  return error(Code::invalid_argument,
               "found '{}', expected a quantity such as 1500m, 2, 0.5, 1.5Gi or 2e3",
               printable(text));
}

bool parse_suffix(std::string_view suffix, Exact* value) {
  struct Suffix {
    std::string_view text;
    int binary;
    int decimal;
  };
  static constexpr Suffix kSuffixes[] = {
      {"", 0, 0},    {"n", 0, -9},  {"u", 0, -6},  {"m", 0, -3},  {"k", 0, 3},   {"M", 0, 6},
      {"G", 0, 9},   {"T", 0, 12},  {"P", 0, 15},  {"E", 0, 18},  {"Ki", 10, 0}, {"Mi", 20, 0},
      {"Gi", 30, 0}, {"Ti", 40, 0}, {"Pi", 50, 0}, {"Ei", 60, 0},
  };
  for (const Suffix& known : kSuffixes) {
    if (suffix == known.text) {
      value->binary = known.binary;
      value->decimal += known.decimal;
      return true;
    }
  }
  if (suffix[0] != 'e' && suffix[0] != 'E') return false;
  std::string_view number = suffix.substr(1);
  if (!number.empty() && number[0] == '+') {
    number.remove_prefix(1);
    if (!number.empty() && number[0] == '-') return false;
  }
  int exponent = 0;
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), exponent);
  if (problem != std::errc() || end != number.data() + number.size()) return false;
  value->decimal += std::clamp(exponent, -kMaxExponent, kMaxExponent);
  return true;
}

Result<Exact> parse_exact(std::string_view text) {
  Exact value;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) value.negative = text[at++] == '-';
  bool any = false, point = false;
  int significant = 0, zeros = 0;  // zeros: held back, because trailing ones don't count as digits
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (point) --value.decimal;
    if (c == '0') {
      if (significant > 0) ++zeros;
      continue;
    }
    significant += zeros + 1;
    if (significant > kMaxDigits) {  // the places that are left out, this one included
      value.decimal += zeros + 1;
      value.more = true;
      zeros = 0;
      significant = kMaxDigits;
      continue;
    }
    for (; zeros > 0; --zeros) value.digits *= 10;
    value.digits = value.digits * 10 + static_cast<std::uint64_t>(c - '0');
  }
  value.decimal += zeros;
  if (!any || text.size() > 1000 || !parse_suffix(text.substr(at), &value)) return wrong(text);
  if (value.more && value.binary > 0) {
    return error(Code::invalid_argument,
                 "found '{}', expected at most {} significant digits before a power of 1024",
                 printable(text), kMaxDigits);
  }
  return value;
}

// value * 10^shift, rounded up.
Result<std::int64_t> round_up(std::string_view text, const Exact& value, int shift) {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kMost = static_cast<Wide>(PENSTOCK_MAX_QUANTITY);
  if (value.digits == 0) return std::int64_t{0};
  if (value.negative) {
    return error(Code::out_of_range, "found '{}', expected a quantity that is not negative",
                 printable(text));
  }
  Wide amount = static_cast<Wide>(value.digits) << value.binary;
  int decimal = value.decimal + shift;
  for (; decimal > 0 && amount <= kMost; --decimal) amount *= 10;
  bool rest = value.more;
  for (; decimal < 0 && amount > 0; ++decimal) {
    rest = rest || amount % 10 != 0;
    amount /= 10;
  }
  if (rest) ++amount;
  if (amount > kMost) {
    return error(Code::out_of_range, "found '{}', expected a quantity of at most {}",
                 printable(text), shift == 0 ? "2^53" : "2^53 thousandths");
  }
  return static_cast<std::int64_t>(amount);
}

}  // namespace

Result<std::int64_t> parse_quantity(std::string_view text) {
  PENSTOCK_ASSIGN(const Exact value, parse_exact(text));
  return round_up(text, value, 0);
}

Result<std::int64_t> parse_milli_quantity(std::string_view text) {
  PENSTOCK_ASSIGN(const Exact value, parse_exact(text));
  return round_up(text, value, 3);
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  // In tenths of the unit, which stay whole; PENSTOCK_MAX_QUANTITY times ten fits.
  std::int64_t tenths = bytes * 10;
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && tenths % 1024 == 0 && std::abs(tenths) >= 10240) {
    tenths /= 1024;
    ++unit;
  }
  if (tenths % 10 == 0) return fmt::format("{}{}", tenths / 10, kUnits[unit]);
  return fmt::format("{}{}.{}{}", tenths < 0 ? "-" : "", std::abs(tenths) / 10,
                     std::abs(tenths) % 10, kUnits[unit]);
}

}  // namespace penstock
