#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/network.hpp>
#include <fast/nn/stage.hpp>

#include "nn/samples.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

template <class T>
std::vector<T> values_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

/// Vectors have thousands of values: a failure shows the difference alone.
template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

/// All stages of a model on this thread, one micro-batch after the other.
template <class T>
struct StageLine {
  std::vector<Stage<T>> stages;

  StageLine(const ModelSpec& model, const std::vector<std::size_t>& cuts, std::uint64_t seed,
            std::size_t micro_batches) {
    for (const LayerRange layers : stages_of(model, cuts))
      stages.emplace_back(model, layers, seed, micro_batches);
  }

  /// The mean loss. All micro-batches go forward before the first goes back.
  double train(const Batch& batch, std::size_t parts) {
    const std::size_t samples = batch.count();
    std::vector<std::vector<T>> gradients(parts);
    double loss = 0;
    for (Stage<T>& stage : stages) stage.begin_gradients();
    for (std::size_t i = 0; i < parts; ++i) {
      const Batch part = part_at(batch, i, parts);
      std::vector<T> values(part.inputs.begin(), part.inputs.end());
      for (Stage<T>& stage : stages) values = values_of(stage.forward(i, values));
      loss += stages.back().loss(i, part).sum / static_cast<double>(samples);
      gradients[i] = values_of(stages.back().loss_gradients());
    }
    for (std::size_t i = 0; i < parts; ++i) {
      const auto count = static_cast<double>(part_at(batch, i, parts).count());
      for (std::size_t s = stages.size(); s-- > 0;)
        gradients[i] =
            values_of(stages[s].backward(i, gradients[i], count / static_cast<double>(samples)));
    }
    return loss;
  }

  static Batch part_at(const Batch& batch, std::size_t i, std::size_t parts) {
    const std::size_t first = batch.count() * i / parts;
    return part_of(batch, first, batch.count() * (i + 1) / parts - first);
  }

  std::vector<T> joined(std::span<T> (Stage<T>::*member)()) {
    std::vector<T> all;
    for (Stage<T>& stage : stages) {
      const std::span<T> values = (stage.*member)();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

struct CutModel {
  ModelSpec model;
  std::vector<std::size_t> cuts;
};

/// Cuts between images, before and after a flatten, between a layer and its ReLU, and sequences.
std::vector<CutModel> cut_models() {
  const ModelSpec residual{"residual",
                           {2, 6, 5},
                           {Conv2d{4, 3, 1, 1}, BatchNorm{}, Relu{},
                            Residual{{Conv2d{4, 3, 1, 1, false}, BatchNorm{}, Relu{}}, {}},
                            GlobalAveragePool{}, Dense{3}}};
  const ModelSpec sequence{
      "sequence", {4, 3}, {Lstm{5, true}, Dense{6}, Gelu{}, Flatten{}, Dense{3}}};
  return {{lenet5(), {3}},    {lenet5(), {1}},           {lenet5(), {6}},
          {lenet5(), {3, 7}}, {mlp({12, 9, 8, 3}), {2}}, {mlp({12, 9, 8, 3}), {1, 3}},
          {residual, {1}},    {residual, {2, 4}},        {residual, {3}},
          {sequence, {1}},    {sequence, {1, 4}}};
}

template <class T>
void check_as_whole(const CutModel& cut, std::size_t count) {
  INFO(cut.model.name << ", first cut after layer " << cut.cuts.front() << ", " << count
                      << " samples");
  const Samples samples(static_cast<std::int64_t>(count), cut.model, 3);
  Network<T> whole(cut.model, 7);
  StageLine<T> line(cut.model, cut.cuts, 7, 1);
  CHECK(largest_difference(line.joined(&Stage<T>::parameters), values_of<T>(whole.parameters())) ==
        0);
  CHECK(line.train(samples.batch(), 1) == whole.loss_and_gradients(samples.batch()));
  CHECK(largest_difference(line.joined(&Stage<T>::gradients), values_of<T>(whole.gradients())) ==
        0);
  std::vector<T> statistics;
  for (Stage<T>& stage : line.stages)
    for (const TensorView& view : stage.buffer_views()) {
      const auto* values = static_cast<const T*>(view.data);
      statistics.insert(statistics.end(), values, values + view.element_count());
    }
  CHECK(largest_difference(statistics, values_of<T>(whole.buffers())) == 0);
}

}  // namespace

TEST_CASE("the stages of a model compute what the whole model computes, bit for bit") {
  for (const CutModel& cut : cut_models()) {
    for (const std::size_t count : {1U, 5U, 21U}) {
      check_as_whole<float>(cut, count);
      check_as_whole<double>(cut, count);
    }
  }
}

TEST_CASE("micro-batches of stages have the gradients that a backend accumulates") {
  for (const std::size_t parts : {2U, 3U}) {
    const Samples samples(11, lenet5(), 10);
    BackendOptions options;
    options.accumulate = static_cast<int>(parts);
    const auto backend = make_backend<float>(lenet5(), 3, options);
    std::vector<float> expected;
    const double loss = backend->train(samples.batch(), [&](const auto& views) {
      for (const TensorView& view : views) {
        const auto* values = static_cast<const float*>(view.data);
        expected.insert(expected.end(), values, values + view.element_count());
      }
    });
    StageLine<float> line(lenet5(), {3}, 3, parts);
    CHECK(line.train(samples.batch(), parts) == Approx(loss).epsilon(1e-12));
    CHECK(largest_difference(line.joined(&Stage<float>::gradients), expected) == 0);
  }
}

TEST_CASE("tensors of stages have the names and shapes of the whole model") {
  Network<float> whole(resnet20(), 1);
  StageLine<float> line(resnet20(), {3, 6}, 1, 1);
  std::size_t place = 0;
  for (Stage<float>& stage : line.stages)
    for (const TensorView& view : stage.parameter_views()) {
      const TensorView expected = whole.parameter_views().at(place++);
      CHECK(view.name == expected.name);
      CHECK(view.shape == expected.shape);
      CHECK(std::memcmp(view.data, expected.data, view.size_bytes()) == 0);
    }
  CHECK(place == whole.parameter_views().size());
}

TEST_CASE("a stage evaluates without changing its statistics") {
  const CutModel cut = cut_models()[7];
  const Samples samples(6, cut.model, 3);
  Network<double> whole(cut.model, 2);
  StageLine<double> line(cut.model, cut.cuts, 2, 1);
  std::vector<double> values(samples.inputs.begin(), samples.inputs.end());
  for (Stage<double>& stage : line.stages) values = values_of(stage.forward(0, values, false));
  CHECK(largest_difference(values, values_of(whole.forward(samples.batch()))) == 0);
  CHECK_THROWS_WITH(line.stages[0].backward(0, values, 1),
                    ContainsSubstring("no forward pass in training"));
}

TEST_CASE("cuts that are no layers, and stages without parameters, are refused") {
  const ModelSpec model = mlp({4, 3, 2});  // dense, relu, dense
  const auto refuse = [&](const std::vector<std::size_t>& cuts, const char* text) {
    CHECK_THROWS_WITH(stages_of(model, cuts), ContainsSubstring(text));
  };
  refuse({0},
         "a cut after 0 layers; model mlp 4-3-2 has 3 layers, cuts are increasing numbers from 1 "
         "to 2");
  refuse({3}, "a cut after 3 layers");
  refuse({2, 2}, "a cut after 2 layers");
  refuse({1, 2}, "layers 2..2 of model mlp 4-3-2 have no parameters");
  CHECK(stages_of(model, {}).size() == 1);
  CHECK_THROWS_WITH(Stage<float>(model, {1, 1}, 1), ContainsSubstring("layers [1, 1)"));
  CHECK_THROWS_WITH(Stage<float>(model, {1, 2}, 1), ContainsSubstring("no parameters"));
  Stage<float> first(model, {0, 1}, 1);
  const std::array<float, 3> odd{};
  CHECK_THROWS_WITH(first.forward(0, odd), ContainsSubstring("3 input values"));
  CHECK_THROWS_WITH(
      first.forward(1, odd),
      ContainsSubstring(
          "micro-batch 1 was asked for; the stage holds 1 (0..0); construct it with more"));
  CHECK_THROWS_WITH(first.loss(0, {}), ContainsSubstring("no loss"));
}
