// A line chart as SVG: axes with round ticks, a grid, a legend. For reports; no scripts, no fonts
// that have to be loaded.
#ifndef PENSTOCK_SCHED_PLOT_H_
#define PENSTOCK_SCHED_PLOT_H_

#include <string>
#include <utility>
#include <vector>

namespace penstock {

struct PlotLine {
  std::string group;                              // lines of a group share colour and legend entry
  std::vector<std::pair<double, double>> points;  // what is not finite is left out
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  double x_min = 0;
  double x_max = 1;
  double y_min = 0;
  double y_max = 1;
  bool diagonal = false;  // a dashed line y = x, which `diagonal_label` explains
  std::string diagonal_label;
  std::vector<PlotLine> lines;
  // Groups in the order of the legend, and what stands there for each.
  std::vector<std::pair<std::string, std::string>> legend;
};

// A complete document. Texts are escaped.
std::string plot_svg(const Plot& plot);

// A distance between ticks of 1, 2 or 5 times a power of ten that gives at most `most` of them.
double tick_step(double range, int most);

}  // namespace penstock
#endif
