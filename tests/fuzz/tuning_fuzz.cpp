// A tuning table: whatever the bytes, parsing gives a table that can be written and read back, or
// an error that names the file.
#include <cstdint>
#include <string>

#include "penstock/base/status.h"
#include "penstock/comm/tuning_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto table = penstock::parse_tuning_table(text, "the-file");
  if (!table.ok()) {
    PENSTOCK_CHECK(table.status().message().find("the-file") != std::string::npos, "{}",
                   table.status().message());
  } else {
    for (const penstock::TuningEntry& entry : table->entries) {
      PENSTOCK_CHECK(penstock::check_tuning(entry.tuning).ok(), "a bad tuning was accepted");
    }
    const std::string written = penstock::tuning_table_text(*table);
    auto again = penstock::parse_tuning_table(written, "the-file");
    PENSTOCK_CHECK(again.ok(), "{}", again.status().message());
    PENSTOCK_CHECK(again->entries == table->entries, "it came back changed");
  }
  penstock::Tuning tuning;
  penstock::LocalTuning local;
  const penstock::Status set = penstock::set_tuning_fields(text, tuning, local);
  PENSTOCK_CHECK(set.ok() || !set.message().empty(), "an error without a sentence");
  return 0;
}
