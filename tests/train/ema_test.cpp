#include "train/run/replica.hpp"

#include <fast/core/tensor_view.hpp>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("an average of weights follows its recursion and forgets its beginning first") {
  std::vector<double> x = {1, -2};
  std::vector<float> y = {4};
  const ParameterLayout layout({view_of("x", std::span(x)), view_of("y", std::span(y))});
  train::Ema ema(layout, 0.25);
  double expected_x = 1, expected_y = 4;
  for (int t = 1; t <= 20; ++t) {
    x[0] = t * t;
    y[0] = static_cast<float>(-t);
    ema.update(layout);
    const double d = std::min(0.25, (1.0 + t) / (10 + t));
    expected_x = d * expected_x + (1 - d) * x[0];
    expected_y = d * expected_y + (1 - d) * static_cast<double>(y[0]);
  }
  layout.scatter(ema.packed().data());
  CHECK(x[0] == Approx(expected_x));
  CHECK(x[1] == -2);
  CHECK(y[0] == Approx(expected_y));
}
