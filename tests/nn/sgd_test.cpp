#include <cmath>
#include <fast/core/error.hpp>
#include <fast/nn/sgd.hpp>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::nn;

TEST_CASE("momentum sums a constant gradient to its geometric series") {
  const double rate = 0.1, beta = 0.9, gradient = 2;
  Sgd<double> sgd({rate, beta, 0}, 1);
  std::vector<double> w{1}, g{gradient};
  double expected = 1;
  for (int t = 1; t <= 20; ++t) {
    sgd.step(w, g);
    const double momentum = gradient * (1 - std::pow(beta, t)) / (1 - beta);
    expected -= rate * momentum;
    CHECK(sgd.momentum()[0] == Approx(momentum).epsilon(1e-12));
    CHECK(w[0] == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("weight decay alone shrinks the weights geometrically") {
  Sgd<double> sgd({0.1, 0, 0.5}, 3);
  std::vector<double> w{1, -2, 4}, g(3, 0.0);
  for (int t = 0; t < 10; ++t) sgd.step(w, g);
  const double factor = std::pow(1 - 0.1 * 0.5, 10);
  CHECK(w[0] == Approx(factor).epsilon(1e-12));
  CHECK(w[1] == Approx(-2 * factor).epsilon(1e-12));
  CHECK(w[2] == Approx(4 * factor).epsilon(1e-12));
  CHECK(sgd.momentum().empty());
}

TEST_CASE("decay and momentum together follow the linear recursion of a quadratic") {
  // g = w: (w, m) -> m' = β m + (1 + λ) w, w' = w - γ m'.
  const double rate = 0.05, beta = 0.8, decay = 0.3;
  const std::size_t count = 37;  // no multiple of a vector's length
  Sgd<float> sgd({rate, beta, decay}, count);
  std::vector<float> w(count), g;
  for (std::size_t i = 0; i < count; ++i) w[i] = static_cast<float>(i) - 18;
  double unit = 1, momentum = 0;
  for (int t = 0; t < 15; ++t) {
    g = w;
    sgd.step(w, g);
    momentum = beta * momentum + (1 + decay) * unit;
    unit -= rate * momentum;
  }
  for (std::size_t i = 0; i < count; ++i)
    CHECK(w[i] == Approx(unit * (static_cast<double>(i) - 18)).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("the learning rate can change between steps") {
  Sgd<double> sgd({0.5, 0, 0}, 1);
  std::vector<double> w{0}, g{1};
  sgd.step(w, g);
  sgd.set_learning_rate(0.25);
  sgd.step(w, g);
  CHECK(w[0] == -0.75);
  CHECK(sgd.options().learning_rate == 0.25);
}

TEST_CASE("options out of range and vectors of another length are refused") {
  CHECK_THROWS_WITH(Sgd<float>({NAN, 0, 0}, 1), ContainsSubstring("learning rate nan"));
  CHECK_THROWS_WITH(Sgd<float>({-1, 0, 0}, 1), ContainsSubstring("learning rate -1"));
  CHECK_THROWS_WITH(Sgd<float>({0.1, 1, 0}, 1), ContainsSubstring("momentum 1 is not in [0, 1)"));
  CHECK_THROWS_WITH(Sgd<float>({0.1, 0, -1}, 1), ContainsSubstring("weight decay -1"));
  Sgd<float> sgd({}, 2);
  std::vector<float> two(2), three(3);
  CHECK_THROWS_AS(sgd.step(two, three), Error);
  CHECK_THROWS_AS(sgd.set_learning_rate(INFINITY), Error);
  CHECK(sgd.options().learning_rate == SgdOptions{}.learning_rate);
}
