// A program whose own code throws on one rank: what is printed must say on which.
//   user_exception [early | leaves | RULE [FILE]]
// early: before it makes its worker, for which the others wait. leaves: rank 1 ends there without
// an exception. RULE is that of the worker. FILE gets the time of the exception in seconds since
// 1970.
#include <fast/fast.hpp>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& file) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  if (!file.empty()) std::ofstream(file) << std::to_string(now.count()) << '\n';
  throw std::runtime_error("no more batches");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "awc", file = argc > 2 ? argv[2] : "";
  return fast::mpi::run(argc, argv, [&](const fast::mpi::Communicator& world) {
    const fast::Group group(world);
    const bool is_early = what == "early" || what == "leaves";
    if (what == "leaves" && world.rank() == 1) return 0;
    if (is_early && world.rank() == 1) throw std::runtime_error("no data");
    std::vector<float> weights(10);
    fast::WorkerOptions options;
    if (!is_early) options.algorithm = fast::algorithm::by_name(what);
    fast::Worker worker(group, fast::stencil::ring(),
                        {fast::view_of("weights", std::span(weights))}, options);
    for (int step = 0; step < 100; ++step) {
      worker.step([&] {
        if (world.rank() == 1 && step == 3) fail(file);
      });
    }
    worker.await_finish();
    return 0;
  });
}
