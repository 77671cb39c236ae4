// Four workers fit one line, each seeing only its own points, each averaging with its neighbors on
// a torus.
//   quickstart                  workers are threads of this process
//   mpiexec -n 4 quickstart     workers are MPI ranks
#include <cstdio>
#include <fast/fast.hpp>
#include <vector>

namespace {

/// y = 3x + 1, seen by each worker in its own range of x.
struct Line {
  std::vector<float> weights{0, 0};  // gradient, intercept: all the library needs to see of a model

  float train(int worker, int step) {
    const float x =
        static_cast<float>((step * 7 + worker * 3) % 10) / 10 - 0.25F * static_cast<float>(worker);
    const float error = weights[0] * x + weights[1] - (3 * x + 1);
    weights[0] -= 0.1F * error * x;
    weights[1] -= 0.1F * error;
    return error * error;
  }
};

void train(const fast::Group& workers) {
  Line model;
  fast::Worker worker(workers, fast::stencil::torus2d(),
                      {fast::view_of("weights", std::span(model.weights))});
  for (int step = 0; step < 1000; ++step) {
    worker.step([&] { return model.train(worker.rank(), step); });
  }
  worker.await_finish();
  if (worker.rank() == 0) {
    std::printf("%d workers found y = %.3f x + %.3f; they differ by %.4f\n", worker.size(),
                model.weights[0], model.weights[1], worker.consensus_distance());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return fast::mpi::run(argc, argv, [](const fast::mpi::Communicator& world) {
    if (world.size() > 1) {
      train(fast::Group(world));
    } else {
      fast::local::run(4, train);
    }
    return 0;
  });
}
