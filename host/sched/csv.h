// A strict reader of comma-separated values (RFC 4180) with a header row: columns are found by
// name, stand in any order, and further ones are ignored. Every error names file:line, the column,
// the value found and what would be right.
#ifndef PENSTOCK_SCHED_CSV_H_
#define PENSTOCK_SCHED_CSV_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"

namespace penstock {

inline constexpr std::size_t kMaxCsvLineBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxCsvColumns = 1024;

// Reads one document; the bytes outlive the reader. One thread at a time.
class CsvReader {
 public:
  // `name` stands for the document in messages, usually its path.
  CsvReader(std::string_view bytes, std::string name);

  // Reads the header row. invalid_argument if a column of `columns` is missing or stands twice.
  Status open(const std::vector<std::string>& columns);
  // Steps to the next row that is not empty; false at the end.
  Result<bool> next();

  // Of the present row, by the index in open's `columns`; quotes are taken away.
  const std::string& field(std::size_t column) const;
  // A whole number of [min, max] in base 10, without sign except '-'.
  Result<std::int64_t> integer(std::size_t column, std::int64_t min, std::int64_t max) const;
  // "FILE:LINE: column 'C': found 'V', `expected`".
  Status bad(std::size_t column, const std::string& expected) const;
  // "FILE:LINE".
  std::string where() const;
  std::size_t line() const { return row_line_; }

 private:
  // Splits the row at the cursor into cells_.
  Status split();
  Status quoted_cell(std::string* cell);
  Status check_byte(char c) const;

  std::string_view bytes_;
  std::string name_;
  std::size_t cursor_ = 0;
  std::size_t line_ = 1;      // of the cursor
  std::size_t row_line_ = 1;  // where the present row began
  std::size_t header_cells_ = 0;
  std::vector<std::string> cells_;
  std::vector<std::string> columns_;
  std::vector<std::size_t> positions_;  // of columns_ in a row
};

// At most this many characters of a value stand in a message, with what cannot be printed escaped.
std::string printable(std::string_view value, std::size_t limit = 40);

// The whole file, or what comes through a pipe (/dev/stdin). not_found, permission_denied,
// io_error, or out_of_range beyond max_bytes.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes);

}  // namespace penstock
#endif
