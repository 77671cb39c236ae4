// A program whose own code throws on one rank: what is printed must say on which.
#include <fast/fast.hpp>

#include <stdexcept>
#include <vector>

int main(int argc, char** argv) {
  return fast::mpi::run(argc, argv, [](const fast::mpi::Communicator& world) {
    std::vector<float> weights(10);
    fast::Worker worker(world, fast::stencil::ring(),
                        {fast::view_of("weights", std::span(weights))});
    for (int step = 0; step < 100; ++step) {
      worker.step([&] {
        if (world.rank() == 1 && step == 3) throw std::runtime_error("no more batches");
      });
    }
    return 0;
  });
}
