// LibTorch against the library's own networks. Includes none of LibTorch's headers.
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/synthetic.hpp>
#include <fast/exchange/local.hpp>
#include <fast/testing/conformance.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/train/trainer.hpp>

#include "backends/backends.hpp"
#include "nn/layer_examples.hpp"
#include "nn/samples.hpp"
#include "support/catch.hpp"

using namespace fast;
using backends::make_torch;

namespace {

nn::ModelSpec small() { return {"small", {16}, {nn::Dense{12}, nn::Relu{}, nn::Dense{4}}}; }

nn::ModelSpec small_residual() {
  const nn::Conv2d conv{4, 3, 1, 1, false};
  return {"small residual",
          {1, 8, 8},
          {conv, nn::BatchNorm{}, nn::Relu{}, nn::Residual{{conv, nn::GroupNorm{2}}, {}},
           nn::Relu{}, nn::GlobalAveragePool{}, nn::Dense{4}}};
}

template <class T>
testing::Report check(const nn::ModelSpec& spec, const fast::torch::ReplicaOptions& replica = {}) {
  return testing::check_backend(
      [&](std::uint64_t seed) { return make_torch<T>(spec, seed, {}, replica); },
      {.sample_shape = spec.input});
}

template <class Report>
void require_passed(const Report& report) {
  INFO(report.to_text());
  CHECK(report.passed());
  CHECK(report.backend == "torch");
}

/// Losses of steps on the same model, batches and optimizer.
template <class T>
void compare_losses(int steps, double tolerance, const nn::BackendOptions& options,
                    const nn::ModelSpec& spec = nn::lenet5()) {
  data::Loader loader(data::synthetic_classification(640, {1, 28, 28}, 10, 3, 2.0), {}, 1, 0, 64,
                      1);
  const auto own = nn::make_backend<T>(spec, 7, options);
  const auto torch = make_torch<T>(spec, 7, options);
  const auto rounds = static_cast<int>(loader.rounds());
  for (int step = 0; step < steps; ++step) {
    const Batch& batch = loader.batch(static_cast<std::size_t>(step / rounds),
                                      static_cast<std::size_t>(step % rounds));
    const double expected = own->train(batch), found = torch->train(batch);
    INFO("step " << step);
    REQUIRE(found == Approx(expected).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("LibTorch's modules pass the suite") {
  require_passed(check<float>(small()));
  require_passed(check<double>(small()));
  require_passed(check<float>(small_residual()));
}

TEST_CASE("modules pass it with their memory left in pieces, and with a mirror in host memory") {
  require_passed(check<float>(small_residual(), {.flat = false}));
  require_passed(check<float>(small_residual(), {.flat = true, .mirror = true}));
  require_passed(check<double>(small(), {.flat = false, .mirror = true}));
}

TEST_CASE("LeNet's losses on LibTorch are those of nn") {
  compare_losses<double>(50, 1e-9, {nn::SgdOptions{0.01, 0.9, 0}});
  compare_losses<float>(10, 1e-4, {nn::SgdOptions{0.01, 0.9, 0}});
}

TEST_CASE("an LSTM's losses on LibTorch are those of nn") {
  const nn::BackendOptions sgd{nn::SgdOptions{0.05, 0.9, 0}};
  compare_losses<double>(20, 1e-9, sgd, nn::lstm(12));
  compare_losses<double>(5, 1e-9, sgd,
                         {"two", {14, 56}, {nn::Lstm{9, true}, nn::Lstm{7}, nn::Dense{10}}});
  compare_losses<float>(10, 1e-4, sgd, nn::lstm(12));
}

namespace {

std::vector<double> numbers(const TensorView& view) {
  const auto* values = static_cast<const double*>(view.data);
  return {values, values + view.element_count()};
}

/// Names, order and values of the parameters.
void compare_parameters(Backend& found, Backend& expected) {
  const auto weights = [](Backend& of) {
    std::vector<TensorView> all = of.parameters();
    std::erase_if(all, [](const TensorView& view) { return view.role != Role::parameter; });
    return all;
  };
  const std::vector<TensorView> own = weights(expected), torch = weights(found);
  REQUIRE(torch.size() == own.size());
  for (std::size_t p = 0; p < own.size(); ++p) {
    INFO(own[p].name);
    CHECK(torch[p].name == own[p].name);
    CHECK(torch[p].shape == own[p].shape);
    const std::vector<double> values = numbers(torch[p]), wanted = numbers(own[p]);
    for (std::size_t e = 0; e < wanted.size(); ++e)
      REQUIRE(values[e] == Approx(wanted[e]).epsilon(1e-8).margin(1e-11));
  }
}

/// The loss of a step, the weights after it, and evaluation of fewer samples. One step: weights
/// that differ in a bit have another dropout.
void compare_a_step(const nn::ModelSpec& spec, const nn::BackendOptions& options) {
  INFO(spec.name);
  const nn::Samples samples(9, spec, 3);
  const auto own = nn::make_backend<double>(spec, 7, options);
  const auto torch = make_torch<double>(spec, 7, options);
  compare_parameters(*torch, *own);
  CHECK(torch->train(samples.batch()) == Approx(own->train(samples.batch())).epsilon(1e-9));
  compare_parameters(*torch, *own);
  const Batch fewer = samples.batch(0, 4);
  CHECK(torch->evaluate(fewer).loss_sum == Approx(own->evaluate(fewer).loss_sum).epsilon(1e-8));
}

}  // namespace

TEST_CASE("every layer of model files computes on LibTorch what nn computes") {
  for (const nn::LayerExample& example : nn::layer_examples())
    compare_a_step(nn::model_of(example), {nn::SgdOptions{0.1, 0, 0}});
}

TEST_CASE("dropout on LibTorch drops what nn drops: in blocks, of steps, and of a batch in parts") {
  using namespace fast::nn;
  const std::vector<ModelSpec> specs{
      {"blocks",
       {3, 6, 5},
       {Conv2d{8, 3, 1, 1}, BatchNorm{}, Relu{}, Dropout{0.3},
        Residual{{Conv2d{8, 3, 1, 1}, Dropout{}}, {Dropout{0.2}}}, Flatten{}, Dense{8}, Relu{},
        Dropout{}, Dense{3}}},
      {"steps",
       {7, 4},
       {Conv1d{6, 3, 2, 1}, Dropout{0.2}, Gru{5, true}, Dropout{}, Lstm{4}, Dense{3}}},
      {"transformer",
       {5, 6},
       {Position{}, Residual{{LayerNorm{}, Attention{2, true}, Dropout{0.2}}, {}}, Attention{3},
        Tanh{}, Dense{6}, LeakyRelu{0.2}, Softmax{}, Dense{4}, Sigmoid{}, Flatten{}, Dense{3}}}};
  for (const ModelSpec& spec : specs) compare_a_step(spec, {SgdOptions{0.1, 0, 0}});
  compare_a_step(specs[1], {SgdOptions{0.1, 0, 0}, 0, 3});
}

TEST_CASE("what is no token is refused by LibTorch's backend, too") {
  const nn::ModelSpec spec{"tokens", {2}, {nn::Embedding{4, 3}, nn::Flatten{}, nn::Dense{2}}};
  const auto torch = make_torch<float>(spec, 1);
  const std::vector<std::int32_t> label{1};
  for (const float bad : {4.0F, -1.0F, 0.5F, std::nanf("")}) {
    const std::vector<float> inputs{3, bad};
    CHECK_THROWS_WITH(torch->train(Batch{inputs, label, {2}}),
                      ContainsSubstring("whole numbers from 0 to 3"));
  }
}

TEST_CASE("losses and measures of all tasks on LibTorch are those of nn") {
  using namespace fast::nn;
  const std::vector<LayerSpec> vector{Dense{6}, Gelu{}, LayerNorm{}, Dense{2}};
  const std::vector<LayerSpec> steps{LayerNorm{}, Lstm{4, true}, Dense{3}};
  const std::vector<ModelSpec> specs{
      {"mse", {4}, vector, {nn::Loss::mse}},
      {"huber", {4}, vector, {nn::Loss::huber, 0.5}},
      {"binary", {4}, vector, {nn::Loss::binary_cross_entropy}},
      {"steps", {5, 4}, steps},
      {"steps, smooth", {5, 4}, steps, {nn::Loss::cross_entropy, 1, 0.2}},
      {"steps, weighted", {5, 4}, steps, {nn::Loss::cross_entropy, 1, 0.1, {0.5, 2, 0}}},
      {"many classes", {4}, {Dense{12}}},
      {"mixed", {4}, {Dense{12}}},
      {"mixed, weighted",
       {4},
       {Dense{12}},
       {nn::Loss::cross_entropy, 1, 0.1, {.5, 2, 0, 1, 1, 1, 1, 1, 1, 1, 1, 3}}},
      {"pool",
       {1, 4, 4},
       {Conv2d{2, 3, 1, 1}, AveragePool{3, 1, 1}, Flatten{}, Dense{2}},
       {nn::Loss::mse}}};
  for (const ModelSpec& spec : specs) {
    INFO(spec.name);
    Rng rng(8);
    const auto numbers = [&](std::size_t count) {
      std::vector<float> values(count);
      for (float& value : values) value = static_cast<float>(rng.uniform(0, 1));
      return values;
    };
    std::size_t inputs_each = 1;
    for (const std::int64_t side : spec.input) inputs_each *= static_cast<std::size_t>(side);
    const std::vector<float> inputs = numbers(8 * inputs_each), targets = numbers(16);
    std::vector<std::int32_t> labels(40);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(rng.below(3));
    const std::span<const std::int32_t> all(labels);
    Batch batch{inputs, {}, spec.input, targets, {2}};
    if (spec.name.starts_with("steps")) batch = {inputs, all, spec.input, {}, {5}};
    if (spec.name == "many classes") batch = {inputs, all.first(8), spec.input};
    if (spec.name.starts_with("mixed"))
      batch = {inputs, all.first(8), spec.input, {}, {}, all.last(8), 0.7};
    const BackendOptions options{.optimizer = SgdOptions{0.1}, .accumulate = 2};
    const auto own = make_backend<double>(spec, 7, options);
    const auto torch = make_torch<double>(spec, 7, options);
    for (int step = 0; step < 5; ++step)
      REQUIRE(torch->train(batch) == Approx(own->train(batch)).epsilon(1e-9));
    CHECK(torch->correct_in_step() == own->correct_in_step());
    const Evaluation found = torch->evaluate(batch), expected = own->evaluate(batch);
    CHECK(found.loss_sum == Approx(expected.loss_sum).epsilon(1e-9));
    REQUIRE(found.measures.size() == 2);
    REQUIRE(expected.measures.size() == 2);
    for (std::size_t m = 0; m < 2; ++m) {
      CHECK(found.measures[m].name == expected.measures[m].name);
      CHECK(found.measures[m].value() == Approx(expected.measures[m].value()).epsilon(1e-9));
    }
  }
}

TEST_CASE("targets that do not fit the loss are refused by LibTorch's backend, too") {
  const std::vector<float> inputs(32), targets(4);
  const std::vector<std::int32_t> labels(2);
  const Batch numbers{inputs, {}, {16}, targets, {2}}, classes{inputs, labels, {16}};
  CHECK_THROWS_WITH(make_torch<float>(small(), 1)->train(numbers),
                    ContainsSubstring("choose the loss mse or huber"));
  nn::ModelSpec line = small();
  line.loss.kind = nn::Loss::mse;
  CHECK_THROWS_WITH(make_torch<float>(line, 1)->train(classes),
                    ContainsSubstring("choose the loss cross_entropy"));
  CHECK_THROWS_WITH(make_torch<float>(line, 1)->train(numbers),
                    ContainsSubstring("2 targets a sample, the model 4 outputs"));
}

TEST_CASE("so they are with Nesterov, Adam, AdamW, clipping and accumulation") {
  compare_losses<double>(5, 1e-9, {nn::SgdOptions{0.01, 0.9, 1e-3, true}});
  compare_losses<double>(5, 1e-7, {nn::AdamOptions{.learning_rate = 1e-3, .weight_decay = 0.01}});
  compare_losses<double>(
      5, 1e-7,
      {nn::AdamOptions{.learning_rate = 1e-3, .weight_decay = 0.01, .decoupled_decay = true}});
  compare_losses<double>(5, 1e-5, {nn::SgdOptions{0.01, 0.9, 0}, 0.5});  // PyTorch adds 1e-6
  compare_losses<double>(5, 1e-9, {nn::SgdOptions{0.01, 0.9, 0}, 0, 3});
}

TEST_CASE("workers train LibTorch's modules by neighbors and by all-reduce alike") {
  const auto samples = data::synthetic_classification(600, {16}, 4, 1);
  const data::Splits data{samples.slice(0, 480), samples.slice(480, 120), {}};
  for (const bool all_reduce : {false, true}) {
    train::TrainerOptions options;
    options.progress = false;
    options.batch_size = 16;
    options.epochs = 8;
    options.all_reduce = all_reduce;
    local::run(3, [&](const Group& group) {
      const auto backend = make_torch<float>(small(), 1);
      const auto summary = train::train(group, stencil::ring(), *backend, data, options);
      if (summary.test_accuracy_mean_model < 0.9) throw std::runtime_error("it did not learn");
    });
  }
}

TEST_CASE(
    "weights and the optimizer's state are all that a replica needs to go on where another is") {
  const auto samples = data::synthetic_classification(64, {16}, 4, 1);
  data::Loader loader(samples, {}, 1, 0, 8, 1);
  const std::vector<nn::OptimizerSpec> optimizers{nn::SgdOptions{0.05, 0.9, 0}, nn::AdamOptions{},
                                                  nn::AdamOptions{.decoupled_decay = true}};
  for (std::size_t k = 0; k < 2 * optimizers.size(); ++k) {
    const bool mirror = k >= optimizers.size();  // as on a device
    const nn::BackendOptions options{optimizers[k % optimizers.size()]};
    const auto one = make_torch<float>(small(), 1, options, {.mirror = mirror});
    const auto other = make_torch<float>(small(), 2, options, {.mirror = mirror});
    for (std::size_t step = 0; step < 4; ++step) one->train(loader.batch(0, step));
    const auto copy = [](const std::vector<TensorView>& from, const std::vector<TensorView>& to) {
      REQUIRE(from.size() == to.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        REQUIRE(describe(from[i]) == describe(to[i]));
        std::memcpy(to[i].data, from[i].data, from[i].size_bytes());
      }
    };
    REQUIRE_FALSE(one->optimizer_state().empty());
    copy(one->parameters(), other->parameters());
    copy(one->optimizer_state(), other->optimizer_state());
    for (std::size_t step = 4; step < 8; ++step)
      REQUIRE(other->train(loader.batch(0, step)) == one->train(loader.batch(0, step)));
  }
  CHECK(make_torch<float>(small(), 1, {nn::SgdOptions{0.1, 0, 0}})->optimizer_state().empty());
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_WITH(make_torch<float>(small(), 1, {.clip_norm = -1}),
                    ContainsSubstring("a norm of -1"));
  CHECK_THROWS_WITH(make_torch<float>(small(), 1, {.accumulate = 0}),
                    ContainsSubstring("in 0 parts"));
  CHECK_THROWS_WITH(make_torch<float>(small(), 1, {nn::SgdOptions{0.1, 2, 0}}),
                    ContainsSubstring("momentum"));
}
