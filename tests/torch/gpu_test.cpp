// Modules of LibTorch on a GPU; where LibTorch finds none, it says so and CTest counts it as
// skipped.
#include <torch/cuda.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <fast/cuda/accelerator.hpp>
#include <fast/cuda/device.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/torch/replica.hpp>
#include <vector>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"

namespace nn = torch::nn;

namespace {

bool has_gpu() {
  const auto found = fast::cuda::inventory();
  if (!found.devices.empty() && torch::cuda::is_available()) return true;
  std::printf("skipped: cuda: %s\n",
              found.devices.empty() ? found.why_none.c_str() : "this LibTorch has no CUDA");
  return false;
}

struct Result {
  std::vector<float> values;
  bool in_place = false;
};

/// A module after some rounds of all ranks, averaged on the GPU or through a mirror on the host.
Result rounds(const fast::Group& group, bool on_device, const fast::algorithm::Rule& rule,
              bool flat) {
  torch::manual_seed(static_cast<std::uint64_t>(group.rank()));
  nn::Sequential own(nn::Linear(5, 67), nn::BatchNorm1d(67), nn::ReLU(), nn::Linear(67, 3));
  const at::Tensor inputs = at::arange(40, at::kFloat).view({8, 5}).to(at::kCUDA) / 40;
  own->to(at::kCUDA);
  torch::optim::SGD optimizer(own->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  fast::WorkerOptions options;
  options.deadline = fast::Seconds(60);
  options.algorithm = rule;
  if (on_device) options.accelerator = fast::cuda::accelerator(0);
  fast::torch::Worker worker(group, fast::stencil::ring(), *own, options, {.flat = flat});
  for (int round = 0; round < 5; ++round) {
    worker.step([&] {
      optimizer.zero_grad();
      own->forward(inputs * (group.rank() + 1)).square().mean().backward();
      optimizer.step();
    });
  }
  worker->finish();
  Result result{{}, !worker.replica().is_mirrored()};
  const auto add = [&](const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().to(at::kCPU, at::kFloat).reshape(-1);
    result.values.insert(result.values.end(), flat.data_ptr<float>(),
                         flat.data_ptr<float>() + flat.numel());
  };
  for (const at::Tensor& tensor : own->parameters()) add(tensor);
  for (const at::Tensor& tensor : own->buffers()) add(tensor);
  return result;
}

}  // namespace

TEST_CASE("modules on a GPU are averaged there as through a mirror on the host") {
  if (!has_gpu()) return;
  const fast::Group group(fast::testing::world());
  namespace algorithm = fast::algorithm;
  for (const algorithm::Rule& rule :
       {algorithm::awc(), algorithm::atc(), algorithm::gradient_tracking()})
    for (const bool flat : {true, false}) {
      CAPTURE(rule.traits().name, flat);
      const Result found = rounds(group, true, rule, flat),
                   expected = rounds(group, false, rule, flat);
      CHECK(found.in_place);
      CHECK(!expected.in_place);
      REQUIRE(found.values.size() == expected.values.size());
      for (std::size_t e = 0; e < found.values.size(); ++e)
        REQUIRE(found.values[e] == Approx(expected.values[e]).epsilon(1e-4).margin(1e-5));
    }
}
