// Federated averaging: members train on data of their own, and only models travel.
//
//   penstock run -n 3 -- ./federated
//
// The model is a line y = a x + b. Every member has points of its own, more the higher its rank,
// and the average weighs a model by its points. The last member comes and goes: in every other
// round it is away, with a weight of 0, and whatever stands in its model then does not matter. All
// find the line that the points of all members lie around.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "penstock/fused.h"
#include "penstock/penstock.hpp"

namespace {

struct Point {
  float x, y;
};

// Points around y = 3 x + 2, the same in every run.
std::vector<Point> points_of(unsigned rank) {
  std::vector<Point> points;
  for (unsigned i = 0; i < 20 * (rank + 1); ++i) {
    const float x = static_cast<float>((i * 37 + rank * 11) % 100) / 50 - 1;
    const float noise = static_cast<float>((i * 53 + rank * 29) % 21) / 100 - 0.1f;
    points.push_back({x, 3 * x + 2 + noise});
  }
  return points;
}

// A few steps of gradient descent on the squared error.
void train(const std::vector<Point>& points, std::vector<float>& model) {
  for (int step = 0; step < 10; ++step) {
    float a = 0, b = 0;
    for (const Point& p : points) {
      const float error = model[0] * p.x + model[1] - p.y;
      a += error * p.x;
      b += error;
    }
    const float rate = 0.5f / static_cast<float>(points.size());
    model[0] -= rate * a;
    model[1] -= rate * b;
  }
}

}  // namespace

int main() {
  penstock_comm* comm = nullptr;
  penstock_fused* fused = nullptr;
  try {
    penstock::check(penstock_comm_init(nullptr, &comm));
    penstock::check(penstock_fused_create(comm, &fused));
    const unsigned rank = penstock_comm_rank(comm), size = penstock_comm_size(comm);
    const std::vector<Point> points = points_of(rank);
    std::vector<float> model = {0, 0}, trained = {0, 0};
    for (int round = 0; round < 20; ++round) {
      const bool away = size > 1 && rank == size - 1 && round % 2 == 1;
      trained = model;
      if (away) {
        trained.assign(2, std::numeric_limits<float>::quiet_NaN());
      } else {
        train(points, trained);
      }
      penstock_fused_call call = PENSTOCK_FUSED_CALL_INIT;
      call.send = trained.data();
      call.recv = model.data();
      call.count = model.size();
      const double weight = away ? 0 : static_cast<double>(points.size());
      penstock::check(penstock_fused_average(fused, &call, weight));
    }
    const bool found = std::fabs(model[0] - 3) < 0.05f && std::fabs(model[1] - 2) < 0.05f;
    std::printf("rank %u of %u, %zu points: y = %.4f x + %.4f%s\n", rank, size, points.size(),
                static_cast<double>(model[0]), static_cast<double>(model[1]),
                found ? "" : " WRONG");
    penstock_fused_destroy(fused);
    penstock_comm_destroy(comm);
    return found ? 0 : 1;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
