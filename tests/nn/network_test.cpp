#include <cmath>
#include <fast/core/error.hpp>
#include <fast/nn/network.hpp>
#include <fast/nn/optimizer.hpp>

#include "nn/samples.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

ModelSpec small_cnn() {
  return {"small",
          {2, 7, 6},
          {Conv2d{3, 3, 1, 1}, Relu{}, MaxPool{2, 2}, Conv2d{4, 2}, Relu{}, Flatten{}, Dense{5},
           Relu{}, Dense{3}}};
}

std::vector<double> copy_of(std::span<const double> values) {
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("the gradients of a whole network are those of finite differences") {
  const Samples samples(3, {2, 7, 6}, 3);
  Network<double> network(small_cnn(), 4);
  const double loss = network.loss_and_gradients(samples.batch());
  CHECK(loss == Approx(network.evaluate(samples.batch()).sum / 3));
  const std::vector<double> found = copy_of(network.gradients());
  const std::span<double> w = network.parameters();
  constexpr double h = 1e-6;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double kept = w[i];
    w[i] = kept + h;
    const double above = network.evaluate(samples.batch()).sum / 3;
    w[i] = kept - h;
    const double below = network.evaluate(samples.batch()).sum / 3;
    w[i] = kept;
    INFO("parameter " << i);
    REQUIRE(found[i] == Approx((above - below) / (2 * h)).epsilon(1e-5).margin(1e-8));
  }
}

TEST_CASE("weights are He normal, biases zero, and a seed gives the same ones again") {
  Network<double> network(lenet5(), 1);
  Network<double> same(lenet5(), 1);
  Network<double> other(lenet5(), 2);
  CHECK(copy_of(network.parameters()) == copy_of(same.parameters()));
  CHECK(copy_of(network.parameters()) != copy_of(other.parameters()));
  for (const ParameterSpec& p : parameters(lenet5())) {
    INFO(p.name);
    double sum = 0, squares = 0;
    for (const double w : network.parameters().subspan(p.offset, p.count)) {
      sum += w;
      squares += w * w;
    }
    if (p.fan_in == 0) {
      CHECK(squares == 0);
      continue;
    }
    const auto count = static_cast<double>(p.count);
    const bool last = p.layer + 1 == network.spec().layers.size();
    const double variance = (last ? 1.0 : 2.0) / static_cast<double>(p.fan_in);
    CHECK(std::abs(sum / count) < 4 * std::sqrt(variance / count));
    CHECK(squares / count == Approx(variance).epsilon(5 * std::sqrt(2 / count)));
  }
}

TEST_CASE("float weights are the rounded double ones, and their results agree") {
  const Samples samples(20, {1, 28, 28}, 10);
  Network<float> single(lenet5(), 3);
  Network<double> twice(lenet5(), 3);
  for (std::size_t i = 0; i < single.parameter_count(); ++i)
    REQUIRE(single.parameters()[i] == static_cast<float>(twice.parameters()[i]));
  CHECK(single.loss_and_gradients(samples.batch()) ==
        Approx(twice.loss_and_gradients(samples.batch())).epsilon(1e-5));
  for (std::size_t i = 0; i < single.parameter_count(); ++i)
    REQUIRE(single.gradients()[i] == Approx(twice.gradients()[i]).epsilon(1e-3).margin(1e-5));
}

TEST_CASE("gradients of a batch are the mean of its samples', short batches after long ones too") {
  for (const ModelSpec& spec : {small_cnn(), mlp({84, 7, 3})}) {
    INFO(spec.name);
    const Samples samples(37, {2, 7, 6}, 3);
    Network<double> network(spec, 9);
    network.loss_and_gradients(samples.batch());
    const std::vector<double> whole = copy_of(network.gradients());
    std::vector<double> sum(whole.size());
    std::size_t first = 0;
    for (const std::size_t count : {std::size_t{20}, std::size_t{16}, std::size_t{1}}) {
      network.loss_and_gradients(samples.batch(first, count));
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += network.gradients()[i] * static_cast<double>(count) / 37;
      first += count;
    }
    for (std::size_t i = 0; i < sum.size(); ++i)
      REQUIRE(sum[i] == Approx(whole[i]).epsilon(1e-9).margin(1e-12));
  }
}

TEST_CASE("a step computed twice has the same bits") {
  const Samples samples(19, {1, 28, 28}, 10);
  Network<float> a(lenet5(), 3), b(lenet5(), 3);
  CHECK(a.loss_and_gradients(samples.batch()) == b.loss_and_gradients(samples.batch()));
  CHECK(std::equal(a.gradients().begin(), a.gradients().end(), b.gradients().begin()));
}

TEST_CASE("the parameters' place can move") {
  const Samples samples(4, {2, 7, 6}, 3);
  Network<double> network(small_cnn(), 4);
  const double before = network.loss_and_gradients(samples.batch());
  std::vector<double> moved = copy_of(network.parameters());
  std::fill(network.parameters().begin(), network.parameters().end(), 0.0);
  network.set_parameter_base(moved.data());
  CHECK(network.parameters().data() == moved.data());
  CHECK(network.parameter_views()[0].data == moved.data());
  CHECK(network.loss_and_gradients(samples.batch()) == before);
  CHECK_THROWS_WITH(network.set_parameter_base(nullptr), ContainsSubstring("null"));
}

TEST_CASE("a moved network goes on where the old one was") {
  const Samples samples(4, {2, 7, 6}, 3);
  Network<double> network(small_cnn(), 4);
  const double before = network.loss_and_gradients(samples.batch());
  Network<double> moved = std::move(network);
  CHECK(moved.loss_and_gradients(samples.batch()) == before);
}

TEST_CASE("views name the tensors of the flat vectors in order") {
  Network<float> network(lenet5(), 1);
  const std::vector<TensorView> views = network.parameter_views();
  REQUIRE(views.size() == 10);
  CHECK(views[4].name == "fc1.weight");
  CHECK(views[4].shape == Shape{120, 400});
  CHECK(views[4].dtype == DType::f32);
  CHECK(views[4].data == network.parameters().data() + 6 * 26 + 16 * 151);
  CHECK(network.gradient_views()[1].data == network.gradients().data() + 150);
  CHECK(reinterpret_cast<std::uintptr_t>(network.parameters().data()) % 64 == 0);
}

TEST_CASE("batches that do not fit the model are refused with what was found") {
  Network<float> network(lenet5(), 1);
  const Samples good(3, {1, 28, 28}, 10);
  Samples bad = good;
  CHECK_NOTHROW(network.forward(good.batch()));

  bad.shape = {28, 28};
  CHECK_NOTHROW(network.forward(bad.batch()));  // one channel
  bad.shape = {3, 32, 32};
  CHECK_THROWS_WITH(network.forward(bad.batch()),
                    ContainsSubstring("[3x32x32]") && ContainsSubstring("lenet5 takes [1x28x28]"));
  bad.shape = {1, 28, 28};
  bad.inputs.pop_back();
  CHECK_THROWS_WITH(network.forward(bad.batch()), ContainsSubstring("2351 input values"));
  bad = good;
  bad.labels[2] = 10;
  CHECK_THROWS_WITH(network.evaluate(bad.batch()),
                    ContainsSubstring("sample 2 of the batch has label 10"));
  bad.labels[2] = -1;
  CHECK_THROWS_AS(network.loss_and_gradients(bad.batch()), Error);
  CHECK_THROWS_WITH(network.forward({{}, {}, {1, 28, 28}}), ContainsSubstring("empty"));
  CHECK_THROWS_WITH(Network<float>({"none", {3}, {Relu{}}}, 1), ContainsSubstring("no parameters"));

  Network<float> vectors(mlp({784, 10}), 1);
  CHECK_NOTHROW(vectors.forward(good.batch()));
  bad.shape = {1, 28, 27};
  CHECK_THROWS_WITH(vectors.forward(bad.batch()), ContainsSubstring("takes [784]"));
}

TEST_CASE("a network may begin with layers that have no parameters") {
  const Samples samples(5, {1, 4, 4}, 2);
  const std::vector<float> inputs = samples.inputs;
  Network<float> images({"m", {1, 4, 4}, {MaxPool{}, Flatten{}, Dense{2}}}, 1);
  CHECK(std::isfinite(images.loss_and_gradients(samples.batch())));
  Network<float> vectors({"m", {16}, {Relu{}, Flatten{}, Dense{2}}}, 1);
  CHECK(std::isfinite(vectors.loss_and_gradients(samples.batch())));
  CHECK(samples.inputs == inputs);
}

TEST_CASE("a network may begin with a normalization") {
  const Samples samples(5, {2, 3, 4}, 2);
  for (const LayerSpec& first : {LayerSpec(BatchNorm{}), LayerSpec(GroupNorm{2})}) {
    Network<double> network({"m", {2, 3, 4}, {first, Relu{}, Flatten{}, Dense{2}}}, 1);
    network.loss_and_gradients(samples.batch());
    const std::vector<double> found = copy_of(network.gradients());
    constexpr double h = 1e-5;
    for (std::size_t i = 0; i < found.size(); ++i) {
      double& weight = network.parameters()[i];
      const double kept = std::exchange(weight, weight + h);
      const double above = network.loss_and_gradients(samples.batch());
      weight = kept - h;
      const double below = network.loss_and_gradients(samples.batch());
      weight = kept;
      INFO("parameter " << i << " of " << describe(first));
      REQUIRE(found[i] == Approx((above - below) / (2 * h)).epsilon(1e-5).margin(1e-8));
    }
  }
}

namespace {

/// Targets y = (x0 - 2 x1, x2) of vectors of three values.
struct Line {
  std::vector<float> inputs, targets;
  Batch batch() const { return {inputs, {}, {3}, targets, {2}}; }
  explicit Line(std::size_t count) {
    Rng rng(4);
    for (std::size_t i = 0; i < 3 * count; ++i) inputs.push_back(static_cast<float>(rng.normal()));
    for (std::size_t i = 0; i < count; ++i) {
      targets.push_back(inputs[3 * i] - 2 * inputs[3 * i + 1]);
      targets.push_back(inputs[3 * i + 2]);
    }
  }
};

}  // namespace

TEST_CASE("a network learns a linear function of several outputs") {
  for (const Loss loss : {Loss::mse, Loss::huber}) {
    const Line line(64);
    Network<double> network({"line", {3}, {Dense{2}}, {loss}}, 1);
    Optimizer<double> optimizer(SgdOptions{.learning_rate = 0.1}, network.parameter_count());
    for (int step = 0; step < 300; ++step) {
      network.loss_and_gradients(line.batch());
      optimizer.step(network.parameters(), network.gradients());
    }
    const LossResult found = network.evaluate(line.batch());
    CHECK(found.sum / 64 < 1e-6);
    REQUIRE(found.measures.size() == 2);
    CHECK(found.measures[0].value() < 1e-3);
    const std::vector<double> expected{1, -2, 0, 0, 0, 1, 0, 0};
    for (std::size_t i = 0; i < 8; ++i)
      CHECK(network.parameters()[i] == Approx(expected[i]).margin(1e-3));
  }
}

TEST_CASE("a network learns a label for each step") {
  const ModelSpec spec{"tags", {4, 2}, {Dense{2}}};
  Samples samples(32, {4, 2}, 2);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < 128; ++i)
    labels.push_back(samples.inputs[2 * i] > samples.inputs[2 * i + 1] ? 1 : 0);
  const Batch batch{samples.inputs, labels, {4, 2}, {}, {4}};
  Network<float> network(spec, 1);
  Optimizer<float> optimizer(AdamOptions{.learning_rate = 0.05}, network.parameter_count());
  for (int step = 0; step < 100; ++step) {
    network.loss_and_gradients(batch);
    optimizer.step(network.parameters(), network.gradients());
  }
  const LossResult found = network.evaluate(batch);
  CHECK(found.correct > 120);
  REQUIRE(found.measures.size() == 2);
  CHECK(found.measures[0].sums == std::vector<double>{static_cast<double>(found.correct), 128});
}

TEST_CASE("targets that do not fit the loss or the outputs are refused") {
  const Line line(4);
  const std::vector<std::int32_t> labels(4);
  const auto refused = [](const ModelSpec& spec, const Batch& batch, const char* text) {
    Network<float> network(spec, 1);
    CHECK_THROWS_WITH(network.loss_and_gradients(batch), ContainsSubstring(text));
  };
  const ModelSpec line_model{"line", {3}, {Dense{2}}, {Loss::mse}};
  refused({"line", {3}, {Dense{2}}}, line.batch(), "choose the loss mse or huber");
  refused(line_model, {line.inputs, labels, {3}}, "choose the loss cross_entropy");
  refused({"line", {3}, {Dense{3}}, {Loss::mse}}, line.batch(),
          "2 targets a sample, the outputs of model line are [3]");
  refused({"line", {3}, {Dense{2}}, {Loss::binary_cross_entropy}}, line.batch(),
          "numbers from 0 to 1");
  refused({"steps", {3, 1}, {Dense{2}}}, {line.inputs, labels, {3}},
          "one for each step of a sequence");
  CHECK_THROWS_WITH(Network<float>({"line", {3}, {Dense{2}}, {Loss::huber, 0}}, 1),
                    ContainsSubstring("delta 0"));
}
