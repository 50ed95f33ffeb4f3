#include "penstock/sched/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

namespace penstock {
namespace {

constexpr double kWidth = 760, kHeight = 480;
constexpr double kLeft = 64, kRight = 20, kTop = 44, kBottom = 56;
// Okabe and Ito's colours, which people with colour blindness tell apart.
constexpr std::array<const char*, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000", "#8c6d1f"};

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

class Chart {
 public:
  explicit Chart(const Plot& plot) : plot_(plot) {}
  std::string render();

 private:
  double x(double value) const {
    return kLeft + (value - plot_.x_min) / (plot_.x_max - plot_.x_min) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom -
           (value - plot_.y_min) / (plot_.y_max - plot_.y_min) * (kHeight - kTop - kBottom);
  }
  const char* colour(const std::string& group) const {
    std::size_t i = 0;
    while (i < plot_.legend.size() && plot_.legend[i].first != group) ++i;
    return kColours[i % kColours.size()];
  }
  void text(double at_x, double at_y, const char* anchor, std::string_view words,
            std::string_view more = "") {
    fmt::format_to(std::back_inserter(out_),
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at_x, at_y,
                   anchor, more, escape(words));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    fmt::format_to(std::back_inserter(out_),
                   "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                   x2, y2, style);
  }
  void axes();
  void curves();
  void legend();

  const Plot& plot_;
  std::string out_;
};

void Chart::axes() {
  constexpr std::string_view kGrid = "stroke=\"#dddddd\"";
  constexpr std::string_view kAxis = "stroke=\"#333333\" stroke-width=\"1.2\"";
  const double step_x = tick_step(plot_.x_max - plot_.x_min, 14);
  for (double at = std::ceil(plot_.x_min / step_x) * step_x; at <= plot_.x_max * (1 + 1e-9);
       at += step_x) {
    line(x(at), y(plot_.y_min), x(at), y(plot_.y_max), kGrid);
    text(x(at), kHeight - kBottom + 18, "middle", fmt::format("{:g}", at));
  }
  const double step_y = tick_step(plot_.y_max - plot_.y_min, 12);
  for (double at = std::ceil(plot_.y_min / step_y) * step_y; at <= plot_.y_max * (1 + 1e-9);
       at += step_y) {
    line(x(plot_.x_min), y(at), x(plot_.x_max), y(at), kGrid);
    text(kLeft - 8, y(at) + 4, "end", fmt::format("{:g}", at));
  }
  line(x(plot_.x_min), y(plot_.y_min), x(plot_.x_max), y(plot_.y_min), kAxis);
  line(x(plot_.x_min), y(plot_.y_min), x(plot_.x_min), y(plot_.y_max), kAxis);
  const double middle_y = (kTop + kHeight - kBottom) / 2;
  text((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle", plot_.x_label);
  text(18, middle_y, "middle", plot_.y_label,
       fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", middle_y));
  text(kLeft, 26, "start", plot_.title, " font-size=\"16\" font-weight=\"bold\"");
}

void Chart::curves() {
  if (plot_.diagonal) {
    const double from = std::max(plot_.x_min, plot_.y_min);
    const double to = std::min(plot_.x_max, plot_.y_max);
    line(x(from), y(from), x(to), y(to), "stroke=\"#888888\" stroke-dasharray=\"5 4\"");
  }
  for (const PlotLine& curve : plot_.lines) {
    fmt::format_to(std::back_inserter(out_),
                   "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"",
                   colour(curve.group));
    for (const auto& [at_x, at_y] : curve.points) {
      if (!std::isfinite(at_x) || !std::isfinite(at_y)) continue;
      fmt::format_to(std::back_inserter(out_), "{:.2f},{:.2f} ", x(at_x), y(at_y));
    }
    out_ += "\"/>\n";
  }
}

void Chart::legend() {
  const std::size_t entries = plot_.legend.size() + (plot_.diagonal ? 1 : 0);
  constexpr double kLine = 20;
  std::size_t longest = plot_.diagonal_label.size();
  for (const auto& entry : plot_.legend) longest = std::max(longest, entry.second.size());
  // About 7 units a character at this size of letters.
  const double wide = 54 + 7.0 * static_cast<double>(longest);
  const double left = kWidth - kRight - wide - 12;
  double at = kHeight - kBottom - 14 - kLine * static_cast<double>(entries);
  fmt::format_to(std::back_inserter(out_),
                 "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                 "fill=\"#ffffff\" stroke=\"#bbbbbb\"/>\n",
                 left, at - 4, wide, kLine * static_cast<double>(entries) + 8);
  for (const auto& [group, words] : plot_.legend) {
    line(left + 10, at + 10, left + 38, at + 10,
         fmt::format("stroke=\"{}\" stroke-width=\"3\"", colour(group)));
    text(left + 46, at + 14, "start", words);
    at += kLine;
  }
  if (plot_.diagonal) {
    line(left + 10, at + 10, left + 38, at + 10, "stroke=\"#888888\" stroke-dasharray=\"5 4\"");
    text(left + 46, at + 14, "start", plot_.diagonal_label);
  }
}

std::string Chart::render() {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  axes();
  curves();
  legend();
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace

double tick_step(double range, int most) {
  if (!(range > 0) || !std::isfinite(range) || most < 1) return 1;
  double step = std::pow(10.0, std::floor(std::log10(range / most)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (range / (step * times) <= most) return step * times;
  }
  return step * 10;
}

std::string plot_svg(const Plot& plot) { return Chart(plot).render(); }

}  // namespace penstock
