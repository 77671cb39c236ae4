#include <fast/core/error.hpp>

#include "cuda/host_works.hpp"
#include "cuda/network_checks.hpp"
#include "nn/cuda/builder.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("a program computes what nn computes: every layer, forward and backward") {
  for (const nn::ModelSpec& spec : device_models()) {
    for (const std::int64_t samples : {1, 2, 5}) {
      // Two values are normalized to -1 and 1 whatever they are: no gradient but rounding.
      if (samples < 5 && spec.input == nn::Shape{4, 1, 1}) continue;
      HostNetwork network(spec);
      check_against_nn(network, spec, samples, 1e-4);
    }
  }
}

TEST_CASE("a program computes what nn computes: each layer alone") {
  for (const nn::ModelSpec& spec : layer_models()) {
    for (const std::int64_t samples : {1, 2, 5}) {
      HostNetwork network(spec);
      check_against_nn(network, spec, samples, 1e-4);
    }
  }
}

TEST_CASE("a program computes what nn computes: layers of random sizes") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const nn::ModelSpec& spec : random_models(seed))
      for (const std::int64_t samples : {1, 6}) {
        INFO("seed " << seed);
        HostNetwork network(spec);
        check_against_nn(network, spec, samples, 1e-4);
      }
}

TEST_CASE("a program computes the losses that nn does, and shows the outputs to be measured") {
  using namespace fast::nn;
  const std::vector<LayerSpec> vector{Dense{6}, Gelu{}, Dense{2}}, steps{LayerNorm{}, Dense{3}};
  const std::vector<ModelSpec> specs{
      {"mse", {4}, vector, {Loss::mse}},
      {"huber", {4}, vector, {Loss::huber, 0.5}},
      {"binary", {4}, vector, {Loss::binary_cross_entropy}},
      {"steps", {5, 4}, steps},
      {"smooth", {5, 4}, steps, {Loss::cross_entropy, 1, 0.2}},
      {"weighted", {5, 4}, steps, {Loss::cross_entropy, 1, 0.1, {0.5, 2, 0}}},
      {"numbers of steps", {5, 4}, steps, {Loss::mse}}};
  for (const ModelSpec& spec : specs) {
    INFO(spec.name);
    const Shape output = shapes(spec).back();
    const bool labeled = spec.loss.kind == Loss::cross_entropy;
    const Samples samples(6, spec.input, 2);
    Rng rng(8);
    std::vector<float> targets;
    for (std::int64_t i = 0; i < 6 * elements(output); ++i)
      targets.push_back(static_cast<float>(rng.uniform(0, 1)));
    std::vector<std::int32_t> labels;
    for (int i = 0; i < 30; ++i) labels.push_back(static_cast<std::int32_t>(rng.below(3)));
    const std::vector<std::int32_t> other(labels.rbegin(), labels.rend());
    const Batch batch = labeled ? Batch{samples.inputs, labels, spec.input, {}, {5}}
                                : Batch{samples.inputs, {}, spec.input, targets, output};
    Batch mixed = batch;
    if (labeled) mixed.mixed_labels = other, mixed.share = 0.7;
    Network<float> reference(spec, 31);
    HostNetwork network(spec);
    network.set_parameters(reference.parameters());
    for (const Batch& each : {batch, mixed}) {
      CHECK(network.loss_and_gradients(each) ==
            Approx(reference.loss_and_gradients(each)).epsilon(1e-5));
      CHECK(apart(network.gradients(), reference.gradients(), 0, network.gradients().size()) <
            1e-5);
    }
    const LossResult found = network.evaluate(batch), expected = reference.evaluate(batch);
    CHECK(found.sum == Approx(expected.sum).epsilon(1e-5));
    CHECK(found.correct == expected.correct);
    REQUIRE(found.measures.size() == 2);
    for (std::size_t m = 0; m < 2; ++m) {
      CHECK(found.measures[m].name == expected.measures[m].name);
      CHECK(found.measures[m].value() == Approx(expected.measures[m].value()).epsilon(1e-5));
    }
  }
}

namespace {
struct WithoutPart {};

template <class... Specs>
constexpr bool all_have_parts(const std::variant<Specs...>*) {
  return (cuda::HasGpuPart<Specs> && ...);
}
}  // namespace

TEST_CASE("every layer has a part for GPUs") {
  STATIC_REQUIRE(all_have_parts(static_cast<const nn::LayerSpec::variant*>(nullptr)));
  STATIC_REQUIRE_FALSE(cuda::HasGpuPart<WithoutPart>);
}

TEST_CASE("a program drops the values that nn drops, also of a batch in parts, and none after") {
  const nn::ModelSpec spec{
      "drop",
      {2, 4, 5},
      {nn::Dropout{0.4}, nn::Flatten{}, nn::Dense{40}, nn::Dropout{}, nn::Dense{3}}};
  HostNetwork network(spec);
  nn::Network<float> reference(spec, 4);
  network.set_parameters(reference.parameters());
  const nn::Samples samples(7, spec.input, 3);
  const double whole = network.loss_and_gradients(samples.batch());
  CHECK(whole == Approx(reference.loss_and_gradients(samples.batch())).epsilon(1e-5));
  CHECK(network.loss_and_gradients(samples.batch()) == whole);
  CHECK((3 * network.loss_and_gradients(samples.batch(0, 3)) +
         4 * network.loss_and_gradients(samples.batch(3, 4))) /
            7 ==
        Approx(whole).epsilon(1e-5));
  CHECK(network.evaluate(samples.batch()).sum ==
        Approx(reference.evaluate(samples.batch()).sum).epsilon(1e-5));
  reference.parameters()[0] += 1e-3F;  // a step: other values
  network.set_parameters(reference.parameters());
  const double later = network.loss_and_gradients(samples.batch());
  CHECK(later == Approx(reference.loss_and_gradients(samples.batch())).epsilon(1e-5));
  CHECK(later != Approx(whole).epsilon(1e-3));
}

TEST_CASE("a layer without a part for GPUs is refused by name") {
  CHECK_NOTHROW(cuda::require_gpu_part<nn::Dense>("dense 3"));
  CHECK_THROWS_WITH(cuda::require_gpu_part<WithoutPart>("wavelet 3"),
                    Catch::Contains("layer \"wavelet 3\" has no GPU part"));
}

TEST_CASE("in bf16 a program computes nearly what nn computes in f32: every layer") {
  for (const nn::ModelSpec& spec : layer_models()) {
    HostNetwork network(spec, cuda::Precision::bf16);
    for (const std::int64_t samples : {16, 64, 92, 112})
      check_against_nn(network, spec, samples, 2e-2);
  }
}

TEST_CASE("in bf16 losses and gradients of whole networks are near those in f32") {
  for (const nn::ModelSpec& spec : device_models()) {
    HostNetwork network(spec, cuda::Precision::bf16);
    check_near_nn(network, spec, 16);
  }
}

TEST_CASE("a program of ResNet-20 computes what nn computes") {
  HostNetwork network(nn::resnet20());
  check_against_nn(network, nn::resnet20(), 2, 1e-3);  // 20 layers of rounding
}

TEST_CASE("sums of many rows are taken in shares and hold for a mean far from 0") {
  nn::ModelSpec spec{"wide", {2, 40, 50}, {nn::BatchNorm{}, nn::GlobalAveragePool{}, nn::Dense{2}}};
  HostNetwork network(spec);
  nn::Network<double> reference(spec, 3);
  std::vector<float> weights(reference.parameters().begin(), reference.parameters().end());
  network.set_parameters(weights);
  nn::Samples batch(8, spec.input, 2);
  for (float& value : batch.inputs) value += 1000;
  network.loss_and_gradients(batch.batch());
  reference.loss_and_gradients(batch.batch());
  const std::vector<float> found = network.buffers();
  for (std::size_t b = 0; b < found.size(); ++b)
    CHECK(double{found[b]} == Approx(reference.buffers()[b]).epsilon(1e-5));
}

TEST_CASE("evaluation reuses memory that training keeps for gradients") {
  HostNetwork network(nn::resnet20());
  const nn::Samples batch(2, {3, 32, 32}, 10);
  network.evaluate(batch.batch());
  const std::size_t evaluation = network.memory_bytes();
  network.loss_and_gradients(batch.batch());
  INFO(evaluation << " and " << network.memory_bytes() << " bytes");
  CHECK(4 * evaluation < network.memory_bytes());
}

TEST_CASE("ReLUs are taken into the work before them") {
  HostNetwork network(nn::mlp({784, 20, 10}));
  const nn::Samples batch(2, {784}, 10);
  network.evaluate(batch.batch());
  CHECK(network.work_count() == 3);  // two products with bias, the loss
}

TEST_CASE(
    "a residual block's sum and ReLU are taken into the normalization before them, and the "
    "ReLU's gradients into the sum of gradients behind it") {
  const nn::Residual block{{nn::Conv2d{8, 3, 1, 1, false}, nn::BatchNorm{}}, {}};
  const auto works = [&](const std::vector<nn::LayerSpec>& layers, bool training) {
    nn::ModelSpec spec{"blocks", {8, 4, 4}, layers};
    spec.layers.insert(spec.layers.end(), {nn::Flatten{}, nn::Dense{3}});
    HostNetwork network(spec);
    const nn::Samples batch(2, spec.input, 3);
    if (training)
      network.loss_and_gradients(batch.batch());
    else
      network.evaluate(batch.batch());
    return network.work_count();
  };
  const nn::Relu relu;
  // Kernels repacked, convolution, moments and normalization.
  CHECK(works({block, relu, block, relu}, false) - works({block, relu}, false) == 4);
  // Moments are of two works; back: two of sums, one of gradients, two of the convolution, one of
  // kernels' gradients repacked, and the sum that the ReLU's gradients are in.
  const std::size_t two = works({block, relu, block, relu}, true);
  CHECK(works({block, relu, block, relu, block, relu}, true) - two == 5 + 7);
}
