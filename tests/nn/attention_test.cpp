// Attention against its definition in plain loops, and models of it.
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/network.hpp>

#include "nn/probe.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

/// Reads the values of a matrix in order.
struct Matrix {
  const Values& values;
  Index first, columns;
  double operator()(Index row, Index column) const {
    return values.at(static_cast<std::size_t>(first + row * columns + column));
  }
};

/// One sample [steps][features].
Values naive_attention(const Attention& attention, Index steps, Index features,
                       const Values& parameters, const Values& x) {
  const Index width = features / attention.heads, square = features * features;
  const Matrix in{parameters, 0, features}, in_bias{parameters, 3 * square, 1},
      out{parameters, 3 * square + 3 * features, features},
      out_bias{parameters, 4 * square + 3 * features, 1}, inputs{x, 0, features};
  const auto projected = [&](Index which, Index step, Index feature) {
    const Index row = which * features + feature;
    double sum = in_bias(row, 0);
    for (Index i = 0; i < features; ++i) sum += in(row, i) * inputs(step, i);
    return sum;
  };
  Values y;
  for (Index step = 0; step < steps; ++step) {
    const Index seen = attention.causal ? step + 1 : steps;
    Values sums;
    for (Index feature = 0; feature < features; ++feature) {
      const Index first = feature / width * width;
      double total = 0, sum = 0;
      for (Index other = 0; other < seen; ++other) {
        double score = 0;
        for (Index i = first; i < first + width; ++i)
          score += projected(0, step, i) * projected(1, other, i);
        const double weight = std::exp(score / std::sqrt(static_cast<double>(width)));
        total += weight;
        sum += weight * projected(2, other, feature);
      }
      sums.push_back(sum / total);
    }
    for (Index o = 0; o < features; ++o) {
      double sum = out_bias(o, 0);
      for (Index i = 0; i < features; ++i) sum += out(o, i) * sums.at(static_cast<std::size_t>(i));
      y.push_back(sum);
    }
  }
  return y;
}

std::string refusal(Shape in, std::vector<LayerSpec> layers) {
  try {
    shapes({"m", std::move(in), std::move(layers)});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::argument);
    return error.what();
  }
  return "accepted";
}

/// Sequences of random tokens, whose label at a step is the token two steps before it.
struct Echo {
  static constexpr std::int64_t steps = 6, tokens = 4;
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;

  Echo(std::size_t samples, Rng& rng) {
    for (std::size_t s = 0; s < samples; ++s) {
      for (std::size_t t = 0; t < steps; ++t) {
        inputs.push_back(static_cast<float>(rng.below(tokens)));
        labels.push_back(t < 2 ? 0 : static_cast<std::int32_t>(inputs[inputs.size() - 3]));
      }
    }
  }
  Batch batch() const { return {inputs, labels, {steps}, {}, {steps}}; }
};

}  // namespace

TEST_CASE("attention gives what its definition says") {
  Rng rng(21);
  for (const Attention& attention : {Attention{1}, {2}, {6}, {1, true}, {3, true}}) {
    for (const Index steps : {1, 2, 7}) {
      INFO(describe(LayerSpec(attention)) << " of " << steps << " steps, seed 21");
      const Index features = 6, size = steps * features;
      Probe probe(attention, {steps, features}, 2);
      const Values parameters = random_values(probe.parameters(), rng);
      const Values x = random_values(probe.inputs(), rng);
      Values expected;
      for (const auto first : {x.begin(), x.begin() + size}) {
        const Values y =
            naive_attention(attention, steps, features, parameters, {first, first + size});
        expected.insert(expected.end(), y.begin(), y.end());
      }
      check_close(probe.forward(parameters, x), expected);
    }
  }
}

TEST_CASE("the gradients of attention are those of differences, whatever batch came before") {
  for (const Index count : {1, 2, 5}) {
    check_gradients(Attention{2}, {3, 4}, count);
    check_gradients(Attention{2, true}, {4, 4}, count);
    check_gradients(Attention{1, true}, {1, 3}, count);
    check_gradients(Softmax{}, {1}, count);
    check_gradients(Residual{{LayerNorm{0.1}, Attention{2, true}, Dense{4}}, {}}, {3, 4}, count);
  }
}

TEST_CASE("causal attention sees no later step, other attention does") {
  Rng rng(22);
  for (const bool causal : {true, false}) {
    Probe probe(Attention{2, causal}, {5, 4}, 1);
    const Values parameters = random_values(probe.parameters(), rng);
    Values x = random_values(probe.inputs(), rng);
    const Values before = probe.forward(parameters, x);
    for (std::size_t i = 12; i < 20; ++i) x[i] += 1;  // the steps 3 and 4
    const Values after = probe.forward(parameters, x);
    const bool same = std::equal(before.begin(), before.begin() + 12, after.begin());
    CHECK(same == causal);
    CHECK_FALSE(std::equal(before.begin() + 12, before.end(), after.begin() + 12));
  }
}

TEST_CASE("softmax holds for large values, and a NaN passes through") {
  Probe probe(Softmax{}, {2, 3}, 1);
  CHECK(probe.forward({}, {1000, 1000, -1000, -5000, -5000, -5000}) ==
        Values{0.5, 0.5, 0, 1 / 3.0, 1 / 3.0, 1 / 3.0});
  const double nan = std::nan("");
  for (std::size_t place = 0; place < 3; ++place) {
    Values x(6, 1);
    x[place] = nan;
    CHECK(std::isnan(probe.forward({}, x)[0]));
    CHECK(std::isnan(Probe(Attention{1}, {1, 1}, 1).forward({0, 0, 1, 0, 0, 0, 1, 0}, {nan})[0]));
  }
}

TEST_CASE("a small transformer learns to repeat what stood two steps before") {
  const auto block = [](std::vector<LayerSpec> body) {
    body.insert(body.begin(), LayerNorm{});
    return Residual{std::move(body), {}};
  };
  ModelSpec spec{"echo", {Echo::steps}, {Embedding{Echo::tokens, 16}, Position{}}};
  spec.layers.emplace_back(block({Attention{2, true}}));
  spec.layers.emplace_back(block({Dense{32}, Gelu{}, Dense{16}}));
  spec.layers.insert(spec.layers.end(), {LayerNorm{}, Dense{Echo::tokens}});
  Rng rng(23);
  const auto backend = make_backend<float>(spec, 1, {.optimizer = AdamOptions{5e-3}});
  for (int step = 0; step < 300; ++step) backend->train(Echo(32, rng).batch());
  const Echo test(100, rng);
  const Evaluation found = backend->evaluate(test.batch());
  INFO("loss " << found.loss_sum / 100 << ", seed 23");
  CHECK(found.loss_sum / 100 < 0.1);  // ln 4 = 1.4 by chance
}

TEST_CASE("what attention, positions and activations do not take is refused") {
  CHECK_THAT(refusal({4, 6}, {Attention{4}}),
             ContainsSubstring("layer 1 (attention, heads 4): 6 features do not split into 4 heads "
                               "of equal size"));
  CHECK_THAT(refusal({4, 6}, {Attention{0}}), ContainsSubstring("heads must be positive"));
  for (const LayerSpec& layer : {LayerSpec(Attention{2}), LayerSpec(Position{})}) {
    CHECK_THAT(refusal({3, 4, 4}, {layer}),
               ContainsSubstring("it takes sequences [steps x features], its input is [3x4x4]"));
    CHECK_THAT(refusal({4}, {layer}), ContainsSubstring("its input is [4]"));
  }
  CHECK_THAT(refusal({3, 4, 4}, {Softmax{}}), ContainsSubstring("put a flatten layer before it"));
  for (const double slope : {-0.1, 1.5, std::nan("")})
    CHECK_THAT(refusal({3}, {LeakyRelu{slope}}), ContainsSubstring("is not in [0, 1]"));
}

TEST_CASE("a model that ends with what its loss applies is not trained") {
  const auto message = [](LayerSpec last, Loss loss) {
    try {
      make_backend<float>({"m", {4}, {Dense{3}, std::move(last)}, {loss}}, 1);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::argument);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message(Softmax{}, Loss::cross_entropy),
             ContainsSubstring("model m: its last layer is softmax, which the loss cross_entropy "
                               "applies itself; remove this layer"));
  CHECK_THAT(message(Sigmoid{}, Loss::binary_cross_entropy),
             ContainsSubstring("sigmoid, which the loss binary_cross_entropy"));
  CHECK(message(Softmax{}, Loss::mse) == "accepted");
  CHECK(message(Sigmoid{}, Loss::cross_entropy) == "accepted");
}
