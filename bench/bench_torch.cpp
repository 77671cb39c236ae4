// What the adapter to LibTorch costs: a training step of LeNet-5 in a round of a single worker, to
// the same step without any. Blocks of steps in turn, on one thread.
#include <ATen/Parallel.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/torch/replica.hpp>
#include <optional>

#include "report.hpp"

using namespace fast::bench;

namespace {

torch::nn::Sequential lenet() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Conv2d(6, 16, 5), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(400, 120), nn::ReLU(), nn::Linear(120, 84),
                        nn::ReLU(), nn::Linear(84, 10));
}

/// A replica that trains on one batch over and over; with a worker or without.
class Trainee {
 public:
  Trainee(std::int64_t batch, std::optional<fast::torch::ReplicaOptions> options)
      : net_(lenet()),
        optimizer_(net_->parameters(), torch::optim::SGDOptions(0.001).momentum(0.9)),
        inputs_(at::randn({batch, 1, 28, 28})),
        labels_(at::randint(10, {batch}, at::kLong)) {
    if (options)
      worker_.emplace(fast::local::make_groups(1).front(), fast::stencil::ring(), *net_,
                      fast::WorkerOptions{}, *options);
  }

  void step() {
    if (worker_)
      worker_->step([&] { return train(); });
    else
      train();
  }

 private:
  double train() {
    optimizer_.zero_grad();
    const at::Tensor loss = torch::nn::functional::cross_entropy(net_->forward(inputs_), labels_);
    loss.backward();
    optimizer_.step();
    return loss.item<double>();
  }

  torch::nn::Sequential net_;
  torch::optim::SGD optimizer_;
  at::Tensor inputs_, labels_;
  std::optional<fast::torch::Worker> worker_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"A LibTorch step of LeNet-5 with a worker of one against the same step alone"};
  Report report("bench_torch", 31);
  report.add_options(app);
  std::vector<std::int64_t> batches{64};
  int steps = 20;
  app.add_option("--batch", batches, "samples a step")->check(CLI::PositiveNumber);
  app.add_option("--steps", steps, "steps in a block")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  for (const std::int64_t batch : batches) {
    Trainee plain(batch, std::nullopt), flat(batch, fast::torch::ReplicaOptions{}),
        pieces(batch, fast::torch::ReplicaOptions{.flat = false});
    const auto timings =
        report.measure_interleaved({{"plain", [&] { plain.step(); }, steps},
                                    {"worker", [&] { flat.step(); }, steps},
                                    {"worker, in pieces", [&] { pieces.step(); }, steps}});
    const char* names[] = {"plain", "worker", "worker, in pieces"};
    for (std::size_t i = 0; i < timings.size(); ++i) {
      Row row{{"batch", batch}, {"to_plain", timings[i].median_ms / timings[0].median_ms}};
      report.add(names[i], row, timings[i]);
    }
  }
  return report.finish();
}
