// A message that nobody has received when its communicator ends must not reach a later
// communicator, to which MPI may give the same context.
#include <array>
#include <fast/mpi/communicator.hpp>
#include <thread>
#include <vector>

#include "exchange/mpi_datagrams.hpp"
#include "mpi/impl.hpp"
#include "mpi/remote_window.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;

namespace {

constexpr std::size_t size = 64;
using Bytes = std::array<std::byte, size>;

Deadline limit() { return Deadline(Seconds(20)); }
void meet() { testing::world().barrier(limit(), "a test"); }
int rank() { return testing::world().rank(); }

Bytes filled(int value) {
  Bytes bytes;
  bytes.fill(static_cast<std::byte>(value));
  return bytes;
}

/// Time for a message that must not come.
template <class Receive>
bool comes(const Receive& receive) {
  for (const Deadline deadline(Seconds(0.3)); !deadline.expired();) {
    if (receive()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

TEST_CASE("a later communicator receives no datagram of an earlier one") {
  for (int time = 0; time < 3; ++time) {
    {
      exchange::MpiDatagrams datagrams(testing::world(), size, limit());
      meet();
      // Rank 1 stops to receive at once: it has no datagram under way itself.
      if (rank() == 0) CHECK(datagrams.send(1, filled(time)));
    }
    meet();
    exchange::MpiDatagrams later(testing::world(), size, limit());
    Bytes datagram{};
    CHECK_FALSE(comes([&] { return later.receive(datagram); }));
    meet();
  }
}

TEST_CASE("a later communicator receives no message of an earlier one") {
  for (int time = 1; time <= 3; ++time) {
    {
      mpi::PointToPoint messages(testing::world(), limit());
      if (rank() == 0) messages.send(1, filled(time));
    }
    meet();
    mpi::PointToPoint later(testing::world(), limit());
    if (rank() == 0) later.send(1, filled(100));
    Bytes found{};
    if (rank() == 1) later.receive(0, found, limit());
    if (rank() == 1) CHECK(found == filled(100));
    meet();
  }
}

TEST_CASE("a later server answers no question of an earlier one") {
  std::vector<std::byte> memory(2 * size);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i / size);
  for (int time = 0; time < 3; ++time) {
    {
      const mpi::Communicator own = mpi::duplicate(testing::world(), limit(), "a test");
      Bytes never{};
      mpi::ReadServer server(own, memory.data(), memory.size());
      meet();
      if (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      mpi::Request none;
      if (rank() == 0) none = server.get(1, 0, never.data(), size);
    }
    meet();
    const mpi::Communicator own = mpi::duplicate(testing::world(), limit(), "a test");
    mpi::ReadServer later(own, memory.data(), memory.size());
    Bytes found{};
    if (rank() == 0) {
      CHECK(later.get(1, size, found.data(), size).wait(limit()));
      CHECK(found == filled(1));
    }
    meet();
  }
}
