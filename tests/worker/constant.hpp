// A worker whose model is one vector, and how scenarios compare numbers.
#pragma once

#include <cmath>

#include "support/golden.hpp"
#include "worker/quick.hpp"

namespace fast::testing {

/// A vector filled with `value`.
struct Constant {
  std::vector<double> x;
  Worker worker;
  Constant(const Group& group, const TopologyRule& rule, double value,
           WorkerOptions options = quick(), std::size_t count = 5)
      : x(count, value), worker(group, rule, {view_of("x", std::span(x))}, std::move(options)) {}
  void idle(int rounds) {
    for (int t = 0; t < rounds; ++t) worker.step([] {}, {.learning_rate = 0.1});
  }
};

inline void expect_near(double value, double expected, const std::string& what,
                        double tolerance = 1e-14) {
  expect(std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected)),
         fmt::format("{}: {} instead of {}", what, value, expected));
}

}  // namespace fast::testing
