// A rank dies that shares a window with the others. They return the window's memory to the system,
// and go on to make Workers without that rank. windows_after_death_test.sh runs it under fastrun.
//   windows_after_death [WORKERS]
#include <unistd.h>
#include <fast/fast.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"

using namespace fast;

namespace {

constexpr std::size_t part_bytes = std::size_t{16} << 20;

Deadline limit() { return Deadline(Seconds(60)); }

long shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == "RssShmem:" && status >> kib) return kib;
  }
  return 0;
}

void await_death(const mpi::Communicator& world) {
  for (const Deadline deadline = limit(); mpi::ended_among(world.impl()->world_ranks).empty();) {
    require(!deadline.expired(), ErrorKind::deadline, "nobody has died");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int end_with(const char* why) {
  std::printf("%s\n", why);
  return 1;
}

int run(const mpi::Communicator& world, int workers) {
  const bool dies = world.rank() == world.size() - 1;
  const mpi::Communicator part = world.split(dies ? 1 : 0, limit());
  const long before = shared_kib();
  auto window = std::make_unique<mpi::SharedWindow>(world, part_bytes, limit());
  mpi::notify_launcher(mpi::LauncherNote::training_began);
  world.barrier(limit(), "before the death");
  if (dies) kill(getpid(), SIGKILL);
  await_death(world);
  window.reset();
  part.barrier(limit(), "after the death");
  if (shared_kib() - before > static_cast<long>(part_bytes >> 10)) return end_with("memory stays");
  for (int time = 0; time < workers; ++time) {
    std::vector<float> weights(10, static_cast<float>(part.rank()));
    Worker worker(part, stencil::ring(), {view_of("weights", std::span(weights))});
    worker.step([] {});
    worker.await_finish();
  }
  std::printf("rank %d: %d workers\n", world.rank(), workers);
  world.disable_collectives();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int workers = argc > 1 ? std::atoi(argv[1]) : 300;
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) { return run(world, workers); });
}
