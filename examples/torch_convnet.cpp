// A convolutional net in LibTorch, trained on Fashion-MNIST by four workers, each averaging with
// its neighbors on a torus. Two lines make the plain loop a decentralized one: they are marked.
//   torch_convnet [SAMPLES]                  workers are threads of this process
//   mpiexec -n 4 torch_convnet [SAMPLES]     workers are MPI ranks
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <fast/data/load.hpp>
#include <fast/data/loader.hpp>
#include <fast/fast.hpp>
#include <fast/torch/replica.hpp>

namespace {

torch::Tensor inputs_of(const fast::Batch& batch) {
  return torch::from_blob(const_cast<float*>(batch.inputs.data()),
                          {static_cast<std::int64_t>(batch.count()), 1, 28, 28});
}

torch::Tensor labels_of(const fast::Batch& batch) {
  return torch::from_blob(const_cast<std::int32_t*>(batch.labels.data()),
                          {static_cast<std::int64_t>(batch.count())}, torch::kInt)
      .to(torch::kLong);
}

torch::nn::Sequential make_net() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)), nn::BatchNorm2d(16),
                        nn::ReLU(), nn::MaxPool2d(2),
                        nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)), nn::BatchNorm2d(32),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(32 * 7 * 7, 10));
}

double accuracy(torch::nn::Sequential net, const fast::data::Splits& data) {
  const torch::NoGradGuard no_gradients;
  net->eval();
  fast::data::Loader loader(data.test, data.normalization, 500);
  std::int64_t correct = 0;
  for (std::size_t r = 0; r < loader.rounds(); ++r) {
    const fast::Batch& batch = loader.batch(0, r);
    const auto found = net->forward(inputs_of(batch)).argmax(1);
    correct += found.eq(labels_of(batch)).sum().item<std::int64_t>();
  }
  net->train();
  return static_cast<double>(correct) / static_cast<double>(data.test.size());
}

void train(const fast::Group& group, std::size_t samples) {
  fast::data::LoadOptions limit;
  limit.limit = samples;
  const auto data = fast::data::load("fashion-mnist", limit);
  fast::data::Loader loader(data.train, data.normalization, group.size(), group.rank(), 64, 1, {});
  torch::nn::Sequential net = make_net();
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  fast::torch::Worker worker(group, fast::stencil::torus2d(), *net);  // added: 1
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    double loss = 0;
    for (std::size_t round = 0; round < loader.rounds(); ++round) {
      const fast::Batch& batch = loader.batch(epoch, round);
      loss += worker.step([&] {  // added: 2
        optimizer.zero_grad();
        const auto value =
            torch::nn::functional::cross_entropy(net->forward(inputs_of(batch)), labels_of(batch));
        value.backward();
        optimizer.step();
        return value.item<double>();
      });
    }
    if (group.rank() == 0)
      std::printf("epoch %zu: loss %.4f\n", epoch + 1, loss / static_cast<double>(loader.rounds()));
  }
  worker->await_finish();
  worker->mean_model(worker.replica().parameters());
  worker.replica().to_module();
  if (group.rank() == 0)
    std::printf("%d workers: their mean model tells %.1f %% of the test images right\n",
                worker->size(), 100 * accuracy(net, data));
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  return fast::mpi::run(argc, argv, [&](const fast::mpi::Communicator& world) {
    const std::size_t samples = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
    if (world.size() > 1) {
      train(fast::Group(world), samples);
    } else {
      fast::local::run(4, [&](const fast::Group& group) { train(group, samples); });
    }
    return 0;
  });
}
