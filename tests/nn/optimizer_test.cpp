#include <cmath>
#include <fast/core/error.hpp>
#include <fast/nn/optimizer.hpp>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

double momentum_of(Optimizer<double>& sgd) {
  return *static_cast<const double*>(sgd.state().at(0).data);
}

/// Adam for one weight, as its paper writes it, with PyTorch's weight decay.
struct ScalarAdam {
  AdamOptions o;
  double m = 0, v = 0;
  int t = 0;
  double step(double w, double g) {
    ++t;
    if (o.decoupled_decay)
      w -= o.learning_rate * o.weight_decay * w;
    else
      g += o.weight_decay * w;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double corrected_m = m / (1 - std::pow(o.beta1, t));
    const double corrected_v = v / (1 - std::pow(o.beta2, t));
    return w - o.learning_rate * corrected_m / (std::sqrt(corrected_v) + o.epsilon);
  }
};

/// Gradients of a quadratic with a gradient of its own for each weight.
double grad_of(double w, std::size_t i) { return (0.3 + 0.1 * static_cast<double>(i)) * w - 0.2; }

}  // namespace

TEST_CASE("momentum sums a constant gradient to its geometric series") {
  const double rate = 0.1, beta = 0.9, gradient = 2;
  Optimizer<double> sgd(SgdOptions{rate, beta, 0}, 1);
  std::vector<double> w{1}, g{gradient};
  double expected = 1;
  for (int t = 1; t <= 20; ++t) {
    sgd.step(w, g);
    const double momentum = gradient * (1 - std::pow(beta, t)) / (1 - beta);
    expected -= rate * momentum;
    CHECK(momentum_of(sgd) == Approx(momentum).epsilon(1e-12));
    CHECK(w[0] == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("weight decay alone shrinks the weights geometrically") {
  Optimizer<double> sgd(SgdOptions{0.1, 0, 0.5}, 3);
  std::vector<double> w{1, -2, 4}, g(3, 0.0);
  for (int t = 0; t < 10; ++t) sgd.step(w, g);
  const double factor = std::pow(1 - 0.1 * 0.5, 10);
  CHECK(w[0] == Approx(factor).epsilon(1e-12));
  CHECK(w[1] == Approx(-2 * factor).epsilon(1e-12));
  CHECK(w[2] == Approx(4 * factor).epsilon(1e-12));
  CHECK(sgd.state().empty());
}

TEST_CASE("decay and momentum together follow the linear recursion of a quadratic") {
  // g = w: (w, m) -> m' = β m + (1 + λ) w, w' = w - γ m'.
  const double rate = 0.05, beta = 0.8, decay = 0.3;
  const std::size_t count = 37;  // no multiple of a vector's length
  Optimizer<float> sgd(SgdOptions{rate, beta, decay}, count);
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
  Optimizer<double> sgd(SgdOptions{0.5, 0, 0}, 1);
  std::vector<double> w{0}, g{1};
  sgd.step(w, g);
  sgd.set_learning_rate(0.25);
  sgd.step(w, g);
  CHECK(w[0] == -0.75);
  CHECK(sgd.learning_rate() == 0.25);
}

TEST_CASE("options out of range and vectors of another length are refused") {
  CHECK_THROWS_WITH(Optimizer<float>(SgdOptions{NAN, 0, 0}, 1),
                    ContainsSubstring("learning rate nan"));
  CHECK_THROWS_WITH(Optimizer<float>(SgdOptions{-1, 0, 0}, 1),
                    ContainsSubstring("learning rate -1"));
  CHECK_THROWS_WITH(Optimizer<float>(SgdOptions{0.1, 1, 0}, 1),
                    ContainsSubstring("momentum 1 is not in [0, 1)"));
  CHECK_THROWS_WITH(Optimizer<float>(SgdOptions{0.1, 0, -1}, 1),
                    ContainsSubstring("weight decay -1"));
  Optimizer<float> sgd(SgdOptions{}, 2);
  std::vector<float> two(2), three(3);
  CHECK_THROWS_AS(sgd.step(two, three), Error);
  CHECK_THROWS_AS(sgd.set_learning_rate(INFINITY), Error);
  CHECK(sgd.learning_rate() == SgdOptions{}.learning_rate);
}

TEST_CASE("Nesterov's step looks ahead by one more momentum") {
  const double rate = 0.1, beta = 0.9, gradient = 2;
  Optimizer<double> sgd(SgdOptions{rate, beta, 0, true}, 1);
  std::vector<double> w{1}, g{gradient};
  double expected = 1;
  for (int t = 1; t <= 20; ++t) {
    sgd.step(w, g);
    const double momentum = gradient * (1 - std::pow(beta, t)) / (1 - beta);
    expected -= rate * (gradient + beta * momentum);
    CHECK(w[0] == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("under a constant gradient each step of Adam is the learning rate, of its sign") {
  Optimizer<double> adam(AdamOptions{.learning_rate = 0.25}, 2);
  std::vector<double> w{1, -1}, g{3, -0.01};
  for (int t = 1; t <= 30; ++t) {
    adam.step(w, g);
    CHECK(w[0] == Approx(1 - 0.25 * t * 3 / (3 + 1e-8)).epsilon(1e-12).margin(1e-12));
    CHECK(w[1] == Approx(-1 + 0.25 * t * 0.01 / (0.01 + 1e-8)).epsilon(1e-12).margin(1e-12));
  }
}

TEST_CASE("Adam and AdamW follow the scalar recursion, in double and in float") {
  for (const bool decoupled : {false, true}) {
    INFO("decoupled decay " << decoupled);
    const AdamOptions options{0.02, 0.8, 0.95, 1e-6, 0.1, decoupled};
    const std::size_t count = 37;  // no multiple of a vector's length
    Optimizer<double> adam(options, count);
    Optimizer<float> narrow(options, count);
    std::vector<ScalarAdam> oracle(count, ScalarAdam{options});
    std::vector<double> w(count), expected(count), g(count);
    for (std::size_t i = 0; i < count; ++i) w[i] = expected[i] = static_cast<double>(i) / 7 - 3;
    std::vector<float> w32(w.begin(), w.end()), g32(count);
    for (int t = 0; t < 25; ++t) {
      for (std::size_t i = 0; i < count; ++i) {
        g[i] = grad_of(w[i], i);
        g32[i] = static_cast<float>(grad_of(static_cast<double>(w32[i]), i));
        expected[i] = oracle[i].step(expected[i], grad_of(expected[i], i));
      }
      adam.step(w, g);
      narrow.step(w32, g32);
    }
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(w[i] == Approx(expected[i]).epsilon(1e-11).margin(1e-12));
      CHECK(static_cast<double>(w32[i]) == Approx(expected[i]).epsilon(1e-4).margin(1e-4));
    }
  }
}

TEST_CASE("decoupled decay alone shrinks the weights geometrically") {
  Optimizer<double> adam(
      AdamOptions{.learning_rate = 0.1, .weight_decay = 0.5, .decoupled_decay = true}, 1);
  std::vector<double> w{4}, g{0};
  for (int t = 0; t < 10; ++t) adam.step(w, g);
  CHECK(w[0] == Approx(4 * std::pow(1 - 0.1 * 0.5, 10)).epsilon(1e-12));
}

TEST_CASE("a step in parts, as deltas, is the step") {
  const std::size_t count = 101;
  for (const OptimizerSpec& spec :
       {OptimizerSpec(SgdOptions{0.1, 0, 0.2}), OptimizerSpec(SgdOptions{0.1, 0.9, 0.2}),
        OptimizerSpec(SgdOptions{0.1, 0.9, 0.2, true}), optimizer_spec("adam"),
        optimizer_spec("adamw")}) {
    Optimizer<double> whole(spec, count), parts(spec, count);
    std::vector<double> w(count, 1.5), v = w, g(count), delta(count);
    for (int t = 0; t < 5; ++t) {
      for (std::size_t i = 0; i < count; ++i) g[i] = grad_of(w[i], i);
      whole.step(w, g);
      parts.begin_step();
      const std::span<const double> weights(v), grads(g);
      for (const auto& [first, size] : {std::pair<std::size_t, std::size_t>{64, 37}, {0, 64}})
        parts.write_delta(first, weights.subspan(first, size), grads.subspan(first, size),
                          std::span(delta).subspan(first, size));
      for (std::size_t i = 0; i < count; ++i) v[i] += delta[i];
    }
    for (std::size_t i = 0; i < count; ++i) REQUIRE(v[i] == Approx(w[i]).epsilon(1e-12));
  }
}

TEST_CASE("optimizers have names; a wrong one lists them") {
  CHECK(std::get<SgdOptions>(optimizer_spec("sgd")).momentum == 0.9);
  CHECK_FALSE(std::get<AdamOptions>(optimizer_spec("adam")).decoupled_decay);
  CHECK(std::get<AdamOptions>(optimizer_spec("adamw")).weight_decay == 0.01);
  CHECK_THROWS_WITH(optimizer_spec("lion"), ContainsSubstring("choose sgd, adam or adamw"));
  CHECK_THROWS_WITH(Optimizer<float>(SgdOptions{0.1, 0, 0, true}, 1),
                    ContainsSubstring("without momentum"));
  CHECK_THROWS_WITH(Optimizer<float>(AdamOptions{.beta2 = 1}, 1),
                    ContainsSubstring("beta2 1 is not in [0, 1)"));
  CHECK_THROWS_WITH(Optimizer<float>(AdamOptions{.epsilon = 0}, 1), ContainsSubstring("epsilon 0"));
}
