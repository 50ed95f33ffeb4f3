#include "penstock/sched/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "penstock/base/platform.h"

namespace penstock {

std::string printable(std::string_view value, std::size_t limit) {
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i == limit) return out + "...";
    const auto c = static_cast<unsigned char>(value[i]);
    if (c < 0x20 || c >= 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

// A pipe has neither size nor offsets, and can be opened once only.
static Result<std::string> read_pipe(const std::string& path, std::uint64_t max_bytes) {
  std::ifstream pipe(path, std::ios::binary);
  std::string bytes;
  std::array<char, 65536> part;
  while (pipe.read(part.data(), part.size()) || pipe.gcount() > 0) {
    bytes.append(part.data(), static_cast<std::size_t>(pipe.gcount()));
    if (bytes.size() > max_bytes) {
      return error(Code::out_of_range, "{}: more than {} bytes, which is all that is read", path,
                   max_bytes);
    }
  }
  if (!pipe.eof()) return error(Code::io_error, "{}: the pipe cannot be read to its end", path);
  return bytes;
}

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_fifo(path, ignored)) return read_pipe(path, max_bytes);
  PENSTOCK_ASSIGN(const auto file, Platform::host().open(path, OpenMode::read_only));
  PENSTOCK_ASSIGN(const std::uint64_t size, file->size());
  if (size > max_bytes) {
    return error(Code::out_of_range, "{}: the file has {} bytes; at most {} are read", path, size,
                 max_bytes);
  }
  std::string bytes(size, '\0');
  std::uint64_t done = 0;
  while (done < size) {
    PENSTOCK_ASSIGN(const std::size_t got, file->read_at(done, bytes.data() + done, size - done));
    if (got == 0) break;  // it became shorter meanwhile
    done += got;
  }
  bytes.resize(done);
  return bytes;
}

CsvReader::CsvReader(std::string_view bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes_.substr(0, kByteOrderMark.size()) == kByteOrderMark) cursor_ = kByteOrderMark.size();
}

std::string CsvReader::where() const { return fmt::format("{}:{}", name_, row_line_); }

Status CsvReader::check_byte(char c) const {
  if (c != '\0') return {};
  return error(Code::invalid_argument, "{}:{}: found a NUL byte, expected text", name_, line_);
}

Status CsvReader::quoted_cell(std::string* cell) {
  const std::size_t began = cursor_;
  ++cursor_;
  while (cursor_ < bytes_.size()) {
    const char c = bytes_[cursor_];
    PENSTOCK_TRY(check_byte(c));
    if (cursor_ - began > kMaxCsvLineBytes) break;
    if (c == '"') {
      ++cursor_;
      if (cursor_ >= bytes_.size() || bytes_[cursor_] != '"') return {};
    } else if (c == '\n') {
      ++line_;
    }
    cell->push_back(c);
    ++cursor_;
  }
  return error(Code::invalid_argument,
               "{}: found a quote that is not closed within {} bytes, expected '\"' at its end",
               where(), kMaxCsvLineBytes);
}

Status CsvReader::split() {
  cells_.clear();
  row_line_ = line_;
  const std::size_t began = cursor_;
  for (;;) {
    std::string cell;
    if (cursor_ < bytes_.size() && bytes_[cursor_] == '"') {
      PENSTOCK_TRY(quoted_cell(&cell));
    } else {
      while (cursor_ < bytes_.size()) {
        const char c = bytes_[cursor_];
        if (c == ',' || c == '\n' || c == '\r') break;
        PENSTOCK_TRY(check_byte(c));
        if (c == '"') {
          return error(Code::invalid_argument,
                       "{}: found a quote within the field '{}', expected quotes around it",
                       where(), printable(cell));
        }
        cell.push_back(c);
        ++cursor_;
        if (cursor_ - began > kMaxCsvLineBytes) break;
      }
    }
    if (cursor_ - began > kMaxCsvLineBytes) {
      return error(Code::invalid_argument, "{}: the line is longer than {} bytes", where(),
                   kMaxCsvLineBytes);
    }
    cells_.push_back(std::move(cell));
    if (cells_.size() > kMaxCsvColumns) {
      return error(Code::invalid_argument, "{}: the line has more than {} fields", where(),
                   kMaxCsvColumns);
    }
    if (cursor_ >= bytes_.size()) return {};
    if (bytes_[cursor_] == '\r') {
      ++cursor_;
      if (cursor_ < bytes_.size() && bytes_[cursor_] != '\n') {
        return error(Code::invalid_argument,
                     "{}: found a carriage return within the line, expected it at its end only",
                     where());
      }
    }
    if (cursor_ >= bytes_.size()) return {};
    const char c = bytes_[cursor_];
    if (c == '\n') {
      ++cursor_;
      ++line_;
      return {};
    }
    if (c != ',') {
      return error(Code::invalid_argument, "{}: found '{}' after a closing quote, expected ','",
                   where(), printable(bytes_.substr(cursor_, 1)));
    }
    ++cursor_;
  }
}

Status CsvReader::open(const std::vector<std::string>& columns) {
  columns_ = columns;
  positions_.clear();
  if (cursor_ >= bytes_.size()) {
    return error(Code::invalid_argument, "{}: the file is empty, expected a header row with {}",
                 name_, fmt::to_string(fmt::join(columns, ", ")));
  }
  PENSTOCK_TRY(split());
  header_cells_ = cells_.size();
  for (const std::string& column : columns) {
    const auto found = std::find(cells_.begin(), cells_.end(), column);
    if (found == cells_.end()) {
      return error(Code::invalid_argument, "{}: the header lacks the column '{}'; found '{}'",
                   where(), column, printable(fmt::to_string(fmt::join(cells_, ",")), 120));
    }
    if (std::find(found + 1, cells_.end(), column) != cells_.end()) {
      return error(Code::invalid_argument,
                   "{}: the header names the column '{}' twice, expected once", where(), column);
    }
    positions_.push_back(static_cast<std::size_t>(found - cells_.begin()));
  }
  return {};
}

Result<bool> CsvReader::next() {
  while (cursor_ < bytes_.size()) {
    PENSTOCK_TRY(split());
    if (cells_.size() == 1 && cells_[0].empty()) continue;
    if (cells_.size() != header_cells_) {
      return error(Code::invalid_argument, "{}: found {} fields, expected {} as in the header",
                   where(), cells_.size(), header_cells_);
    }
    return true;
  }
  return false;
}

const std::string& CsvReader::field(std::size_t column) const {
  PENSTOCK_CHECK(column < positions_.size() && positions_[column] < cells_.size());
  return cells_[positions_[column]];
}

Status CsvReader::bad(std::size_t column, const std::string& expected) const {
  return error(Code::invalid_argument, "{}: column '{}': found '{}', expected {}", where(),
               columns_[column], printable(field(column)), expected);
}

Result<std::int64_t> CsvReader::integer(std::size_t column, std::int64_t min,
                                        std::int64_t max) const {
  const std::string& text = field(column);
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return bad(column, fmt::format("a whole number from {} to {}", min, max));
  }
  return value;
}

}  // namespace penstock
