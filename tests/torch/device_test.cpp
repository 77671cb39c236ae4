// Modules that an accelerator averages in place. The device is the host, on whose memory the
// modules are.
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <fast/data/synthetic.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/torch/backend.hpp>
#include <fast/torch/replica.hpp>
#include <fast/train/trainer.hpp>
#include <fast/worker/device_replica.hpp>
#include <memory>
#include <vector>

#include "support/catch.hpp"
#include "support/host_accelerator.hpp"

namespace nn = torch::nn;
using fast::testing::HostAccelerator;

namespace {

constexpr int workers = 3;

std::shared_ptr<HostAccelerator> accelerator() {
  return std::make_shared<HostAccelerator>(fast::testing::Sharing{.on_all = true, .tensors = {}});
}

nn::Sequential net(int seed) {
  torch::manual_seed(static_cast<std::uint64_t>(seed));
  return nn::Sequential(nn::Linear(5, 7), nn::BatchNorm1d(7), nn::ReLU(), nn::Linear(7, 3));
}

std::vector<float> values(const nn::Sequential& net) {
  std::vector<float> all;
  const auto add = [&](const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().to(at::kFloat).reshape(-1);
    all.insert(all.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  };
  for (const at::Tensor& tensor : net->parameters()) add(tensor);
  for (const at::Tensor& tensor : net->buffers()) add(tensor);
  return all;
}

/// The last bits of LibTorch's sums may differ with the places of tensors.
void check_same(const std::vector<std::vector<float>>& found,
                const std::vector<std::vector<float>>& expected) {
  for (std::size_t w = 0; w < found.size(); ++w) {
    REQUIRE(found[w].size() == expected[w].size());
    for (std::size_t e = 0; e < found[w].size(); ++e)
      REQUIRE(found[w][e] == Approx(expected[w][e]).epsilon(1e-5).margin(1e-6));
  }
}

/// What each worker's module is after some rounds.
std::vector<std::vector<float>> rounds(bool on_device, const fast::torch::ReplicaOptions& replica) {
  std::vector<std::vector<float>> found(workers);
  std::vector<nn::Sequential> nets;
  for (int w = 0; w < workers; ++w) nets.push_back(net(w));
  const at::Tensor inputs = at::arange(40, at::kFloat).view({8, 5}) / 40;
  fast::local::run(workers, [&](const fast::Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    nn::Sequential& own = nets[rank];
    torch::optim::SGD optimizer(own->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    fast::WorkerOptions options;
    options.deadline = fast::Seconds(60);
    if (on_device) options.accelerator = accelerator();
    fast::torch::Worker worker(group, fast::stencil::ring(), *own, options, replica);
    for (int round = 0; round < 5; ++round) {
      worker.step([&] {
        optimizer.zero_grad();
        own->forward(inputs * (group.rank() + 1)).square().mean().backward();
        optimizer.step();
      });
    }
    found[rank] = values(own);
    if (on_device && worker.replica().is_mirrored()) throw std::runtime_error("it is mirrored");
  });
  return found;
}

/// The same trained by the Trainer.
std::vector<std::vector<float>> training(bool on_device) {
  const auto samples = fast::data::synthetic_classification(128, {5}, 3, 1);
  const fast::data::Splits data{samples.slice(0, 96), samples.slice(96, 32), {}};
  std::vector<std::vector<float>> found(workers);
  std::vector<nn::Sequential> nets;
  for (int w = 0; w < workers; ++w) nets.push_back(net(1));
  fast::local::run(workers, [&](const fast::Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    nn::Sequential& own = nets[rank];
    fast::torch::ModuleOptions options;
    if (on_device) options.accelerator = accelerator();
    const auto backend = fast::torch::make_backend(
        own, std::make_shared<torch::optim::SGD>(own->parameters(), torch::optim::SGDOptions(0.1)),
        options);
    if ((dynamic_cast<fast::DeviceReplica*>(backend.get()) != nullptr) != on_device)
      throw std::runtime_error("it is, or is not, averaged on its device");
    fast::train::TrainerOptions trainer;
    trainer.progress = false;
    trainer.batch_size = 8;
    trainer.epochs = 2;
    fast::train::train(group, fast::stencil::ring(), *backend, data, trainer);
    found[rank] = values(own);
  });
  return found;
}

}  // namespace

TEST_CASE("a module is averaged where it is by an accelerator, as in host memory") {
  for (const bool flat : {true, false})
    check_same(rounds(true, {.flat = flat}), rounds(false, {.flat = flat}));
}

TEST_CASE("the Trainer averages a module on its device, as in host memory") {
  check_same(training(true), training(false));
}
