// A program whose own code throws on one rank: what is printed must say on which.
//   user_exception [early | leaves]    early: before it makes its worker, for which the others
//   wait. leaves: rank 1 ends there without an exception
#include <fast/fast.hpp>

#include <stdexcept>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  return fast::mpi::run(argc, argv, [argc, argv](const fast::mpi::Communicator& world) {
    const fast::Group group(world);
    if (argc > 1 && world.rank() == 1 && std::string(argv[1]) == "leaves") return 0;
    if (argc > 1 && world.rank() == 1) throw std::runtime_error("no data");
    std::vector<float> weights(10);
    fast::Worker worker(group, fast::stencil::ring(),
                        {fast::view_of("weights", std::span(weights))});
    for (int step = 0; step < 100; ++step) {
      worker.step([&] {
        if (world.rank() == 1 && step == 3) throw std::runtime_error("no more batches");
      });
    }
    return 0;
  });
}
