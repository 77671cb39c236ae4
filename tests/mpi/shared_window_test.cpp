// The end of shared windows: no rank waits for another, the memory goes back to the system, and
// windows can be made for as long as a program runs.
#include <fast/core/deadline.hpp>
#include <fstream>
#include <memory>
#include <string>

#include "mpi/retired_windows.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;

namespace {

constexpr std::size_t part_bytes = std::size_t{16} << 20;
/// More than MPICH has at a time, which is 2,048. Its calls do not yield: more ranks take longer.
int many() { return testing::world().size() <= 2 ? 2500 : 50; }

Deadline limit() { return Deadline(Seconds(60)); }
const mpi::Communicator& world() { return testing::world(); }
void meet() { world().barrier(limit(), "a test"); }

/// Of memory that this process shares, what the system holds for it.
long shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == "RssShmem:" && status >> kib) return kib;
  }
  return 0;
}

/// Rank `last` releases its window when all others have.
void release_in_order(std::unique_ptr<mpi::SharedWindow> window, int last) {
  if (world().rank() != last) window.reset();
  meet();
  window.reset();
  meet();
}

std::unique_ptr<mpi::SharedWindow> opened() {
  mpi::free_retired(world(), limit());
  return std::make_unique<mpi::SharedWindow>(world(), part_bytes, limit());
}

}  // namespace

TEST_CASE("the last rank that releases a window returns its memory, and no rank waits for it") {
  if (world().size() == 1) return;  // MPI shares no memory then
  const long before = shared_kib();
  for (int time = 0; time < 3; ++time) {
    auto window = opened();
    const long held = shared_kib() - before;
    CHECK(held >= static_cast<long>(part_bytes >> 10));
    release_in_order(std::move(window), time % world().size());
    CHECK(shared_kib() - before < held / 4);
  }
}

TEST_CASE("a window that was released works on for those that still use it") {
  auto window = opened();
  window->part(world().rank())[part_bytes - 1] = std::byte{7};
  meet();
  const bool is_last = world().rank() == world().size() - 1;
  if (!is_last) window.reset();
  meet();
  for (int rank = 0; is_last && rank < world().size(); ++rank)
    CHECK(window->part(rank)[part_bytes - 1] == std::byte{7});
  window.reset();
  meet();
  window = opened();  // zeroed anew
  CHECK(window->part(world().rank())[part_bytes - 1] == std::byte{0});
}

TEST_CASE("as many windows can be opened one after the other as a program likes") {
  for (int time = 0; time < many(); ++time) {
    mpi::free_retired(world(), limit());
    const mpi::SharedWindow window(world(), 64, limit());
  }
  SUCCEED();
}

TEST_CASE("windows of a part of the ranks are freed by that part, or by all") {
  for (int time = 0; time < many() / 10; ++time) {
    const mpi::Communicator half = world().split(world().rank() % 2, limit());
    mpi::free_retired(half, limit());
    const mpi::SharedWindow of_half(half, 64, limit());
    if (time % 10 == 0) mpi::free_retired(world(), limit());
    const mpi::SharedWindow of_all(world(), 64, limit());
  }
  SUCCEED();
}
