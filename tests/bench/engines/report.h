// How `./run bench engines` shows its figures.
#ifndef PENSTOCK_TESTS_BENCH_ENGINES_REPORT_H_
#define PENSTOCK_TESTS_BENCH_ENGINES_REPORT_H_

#include <string>
#include <vector>

#include "measure.h"

namespace penstock::bench {

std::string as_text(const std::vector<Figure>& figures);
std::string as_json(const std::vector<Figure>& figures);
std::string as_markdown(const std::vector<Figure>& figures);

}  // namespace penstock::bench
#endif
