#include <array>
#include <cmath>
#include <fast/nn/network.hpp>
#include <fast/nn/optimizer.hpp>
#include <limits>

#include "nn/probe.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

/// The definition, a number at a time: all h of one sample.
Values naive_lstm(Index hidden, Index inputs, Index steps, const Values& parameters,
                  const double* x) {
  const auto at = [&](Index place) { return parameters.at(static_cast<std::size_t>(place)); };
  std::vector<double> h(static_cast<std::size_t>(hidden)), c = h, all;
  for (Index t = 0; t < steps; ++t) {
    std::vector<double> next;
    for (Index u = 0; u < hidden; ++u) {
      double z[4];
      for (Index gate = 0; gate < 4; ++gate) {
        const Index row = gate * hidden + u;
        z[gate] = at(4 * hidden * (inputs + hidden) + row);
        for (Index i = 0; i < inputs; ++i) z[gate] += at(row * inputs + i) * x[t * inputs + i];
        for (Index j = 0; j < hidden; ++j)
          z[gate] += at(4 * hidden * inputs + row * hidden + j) * h[static_cast<std::size_t>(j)];
      }
      double& cell = c[static_cast<std::size_t>(u)];
      cell = sigmoid(z[1]) * cell + sigmoid(z[0]) * std::tanh(z[2]);
      next.push_back(sigmoid(z[3]) * std::tanh(cell));
    }
    h = next;
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

}  // namespace

TEST_CASE("an LSTM is what its definition says") {
  for (const Index count : {1, 3})
    for (const auto& [steps, inputs, hidden] :
         {std::array<Index, 3>{1, 1, 1}, {5, 3, 4}, {4, 7, 9}}) {
      Rng rng(6);
      const Shape in{steps, inputs};
      Probe every(Lstm{hidden, true}, in, count), last(Lstm{hidden}, in, count);
      const Values parameters = random_values(every.parameters(), rng);
      const Values x = random_values(every.inputs(), rng);
      const Values all = every.forward(parameters, x), ends = last.forward(parameters, x);
      for (Index n = 0; n < count; ++n) {
        INFO("sample " << n << " of " << count << ", " << describe(in) << ", " << hidden);
        const Values expected =
            naive_lstm(hidden, inputs, steps, parameters, x.data() + n * steps * inputs);
        const auto first = all.begin() + n * steps * hidden;
        check_close({first, first + steps * hidden}, expected);
        check_close({ends.begin() + n * hidden, ends.begin() + (n + 1) * hidden},
                    {expected.end() - hidden, expected.end()});
      }
    }
}

TEST_CASE("the gradients of an LSTM, back through time, are those of finite differences") {
  for (const Index count : {1, 3})
    for (const bool every_step : {false, true}) {
      check_gradients(Lstm{1, every_step}, {1, 1}, count);
      check_gradients(Lstm{4, every_step}, {5, 3}, count);
      check_gradients(Lstm{9, every_step}, {3, 2}, count);
    }
}

TEST_CASE("a NaN or an overflow in a sequence reaches the LSTM's outputs as it should") {
  Probe probe(Lstm{1, true}, {2, 1}, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double h : probe.forward({1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, {nan, 1}))
    CHECK(std::isnan(h));
  // Gates at 0 and 1: c counts the steps.
  const Values open = probe.forward({1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {1e6, 1e6});
  check_close(open, {std::tanh(1.0), std::tanh(2.0)});
  const Values shut = probe.forward({1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {-1e6, -1e6});
  check_close(shut, {0, 0});
}

TEST_CASE("an LSTM in float keeps NaN, and to rounding gives what it gives in double") {
  const ModelSpec spec{"two", {6, 5}, {Lstm{7, true}, Lstm{9}, Dense{4}}};
  Samples samples(11, spec.input, 4);
  Network<float> single(spec, 3);
  Network<double> twice(spec, 3);
  CHECK(single.loss_and_gradients(samples.batch()) ==
        Approx(twice.loss_and_gradients(samples.batch())).epsilon(1e-6));
  for (std::size_t i = 0; i < single.parameter_count(); ++i)
    REQUIRE(double{single.gradients()[i]} ==
            Approx(twice.gradients()[i]).epsilon(1e-4).margin(1e-6));
  samples.inputs[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(single.loss_and_gradients(samples.batch())));
}

TEST_CASE("an LSTM learns which of its steps was bright") {
  const ModelSpec spec = lstm(16, 4, {4, 3});
  Network<float> network(spec, 2);
  Optimizer<float> optimizer(AdamOptions{.learning_rate = 0.02}, network.parameter_count());
  Samples samples(64, spec.input, 4);
  for (std::size_t i = 0; i < samples.inputs.size(); ++i)
    samples.inputs[i] += i / 3 % 4 == static_cast<std::size_t>(samples.labels[i / 12]) ? 3.0F : 0;
  for (int step = 0; step < 120; ++step) {
    network.loss_and_gradients(samples.batch());
    optimizer.step(network.parameters(), network.gradients());
  }
  CHECK(network.evaluate(samples.batch()).correct >= 60);
}
