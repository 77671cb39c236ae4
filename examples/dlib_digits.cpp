// A net of dlib, trained on Fashion-MNIST by four workers, each averaging with its neighbors on a
// torus. Two lines make the plain loop a decentralized one: they are marked.
//   dlib_digits [SAMPLES]                  workers are threads of this process
//   mpiexec -n 4 dlib_digits [SAMPLES]     workers are MPI ranks
#include <dlib/dnn.h>

#include <cstdio>
#include <cstdlib>
#include <fast/data/load.hpp>
#include <fast/data/loader.hpp>
#include <fast/dlib/replica.hpp>
#include <fast/fast.hpp>
#include <mutex>

namespace {

using Image = dlib::matrix<float>;
using Net = dlib::loss_multiclass_log<dlib::fc<
    10,
    dlib::relu<dlib::fc<
        84, dlib::max_pool<
                2, 2, 2, 2,
                dlib::relu<dlib::con<
                    12, 5, 5, 1, 1,
                    dlib::max_pool<2, 2, 2, 2,
                                   dlib::relu<dlib::con<6, 5, 5, 1, 1, dlib::input<Image>>>>>>>>>>>;

std::vector<Image> images_of(const fast::Batch& batch) {
  std::vector<Image> images;
  for (std::size_t i = 0; i < batch.count(); ++i)
    images.push_back(dlib::mat(batch.inputs.data() + i * 784, 28, 28));
  return images;
}

std::vector<unsigned long> labels_of(const fast::Batch& batch) {
  return {batch.labels.begin(), batch.labels.end()};
}

double accuracy(Net& net, const fast::data::Splits& data) {
  fast::data::Loader loader(data.test, data.normalization, 500);
  std::size_t correct = 0;
  for (std::size_t r = 0; r < loader.rounds(); ++r) {
    const fast::Batch& batch = loader.batch(0, r);
    const std::vector<unsigned long> found = net(images_of(batch)), labels = labels_of(batch);
    for (std::size_t i = 0; i < labels.size(); ++i) correct += found[i] == labels[i] ? 1 : 0;
  }
  return static_cast<double>(correct) / static_cast<double>(data.test.size());
}

void train(const fast::Group& group, std::size_t samples) {
  fast::data::LoadOptions limit;
  limit.limit = samples;
  const auto data = fast::data::load("fashion-mnist", limit);
  fast::data::Loader loader(data.train, data.normalization, group.size(), group.rank(), 64, 1, {});
  Net net;
  {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    std::srand(1);                               // whence dlib draws
    net(images_of(loader.batch(0, 0)).front());  // parameters come to be
  }
  std::vector<dlib::sgd> solvers(Net::num_computational_layers, dlib::sgd(0, 0.9F));
  dlib::resizable_tensor inputs;
  fast::dlib::Worker worker(group, fast::stencil::torus2d(), net);  // added: 1
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    double loss = 0;
    for (std::size_t round = 0; round < loader.rounds(); ++round) {
      const fast::Batch& batch = loader.batch(epoch, round);
      loss += worker.step([&] {  // added: 2
        const std::vector<Image> images = images_of(batch);
        const std::vector<unsigned long> labels = labels_of(batch);
        net.to_tensor(images.begin(), images.end(), inputs);
        const double value = net.compute_parameter_gradients(inputs, labels.begin());
        net.update_parameters(dlib::make_sstack(solvers), 0.02);
        return value;
      });
    }
    if (group.rank() == 0)
      std::printf("epoch %zu: loss %.4f\n", epoch + 1, loss / static_cast<double>(loader.rounds()));
  }
  worker->await_finish();
  worker->mean_model(worker.replica().parameters());
  if (group.rank() == 0)
    std::printf("%d workers: their mean model tells %.1f %% of the test images right\n",
                worker->size(), 100 * accuracy(net, data));
}

}  // namespace

int main(int argc, char** argv) {
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
