// A rank that starts a program in the middle of training.
//   starts_programs COMMAND    rank 0 gives it to a shell, and says with which status it has ended
//   starts_programs            says its rank
#include <fast/fast.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  return fast::mpi::run(argc, argv, [&](const fast::mpi::Communicator& world) {
    std::vector<float> weights(10);
    fast::WorkerOptions options;
    options.deadline = fast::Seconds(60);
    fast::Worker worker(fast::Group(world), fast::stencil::ring(),
                        {fast::view_of("weights", std::span(weights))}, options);
    int status = 0;
    for (int round = 0; round < 3; ++round) {
      worker.step([&] {
        if (argc > 1 && round == 1 && world.rank() == 0)
          status = std::system(argv[1]);  // NOLINT(concurrency-mt-unsafe)
      });
    }
    worker.await_finish();
    std::printf("%s %d of %d ended, %d\n", argc > 1 ? "rank" : "child", world.rank(), world.size(),
                status == 0 ? 0 : 1);
    return 0;
  });
}
