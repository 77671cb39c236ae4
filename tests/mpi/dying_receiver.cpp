// Rank 0 sends to both others. Rank 1 dies. Rank 0 is told so, and sends to rank 2 on.
// dying_peers_test.sh runs this program with each rank as if on a host of its own. With an
// argument, rank 1 dies while messages to it are under way.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/mpi/communicator.hpp>
#include <fast/mpi/environment.hpp>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t message_bytes = 600'000;
constexpr int messages_before = 20, messages_after = 20;
constexpr std::byte last_mark{1};
constexpr fast::Seconds limit{25};  ///< on a busy machine rank 1 takes long for its messages

/// Until a while after the death of rank 1.
void send(fast::mpi::PointToPoint& messages, std::vector<std::byte> bytes) {
  const fast::Deadline deadline(limit);
  int failed = 0;
  while (bytes[0] != last_mark) {
    try {
      messages.send(1, bytes);
    } catch (const fast::Error& error) {
      if (error.kind() != fast::ErrorKind::peer_failed) throw;
      if (failed++ == 0) std::printf("%s\n", error.what());
    }
    if (failed == messages_after || deadline.expired()) bytes[0] = last_mark;
    messages.send(2, bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void receive(fast::mpi::PointToPoint& messages, int count, std::vector<std::byte>& bytes) {
  for (int i = 0; i < count; ++i) messages.receive(0, bytes, fast::Deadline(limit));
}

}  // namespace

int main(int argc, char** argv) {
  const bool leaves_some = argc > 1;
  return fast::mpi::run(argc, argv, [&](const fast::mpi::Communicator& world) {
    fast::mpi::PointToPoint messages(world, fast::Deadline(limit));
    std::vector<std::byte> bytes(message_bytes);
    if (world.rank() == 0) send(messages, bytes);
    const bool takes_one = leaves_some && world.rank() == 1;
    if (world.rank() > 0) receive(messages, takes_one ? 1 : messages_before, bytes);
    if (takes_one) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (world.rank() == 1) kill(getpid(), SIGKILL);
    while (world.rank() == 2 && bytes[0] != last_mark) receive(messages, 1, bytes);
    // After a death nobody waits for all at the end: rank 0 stays until all has arrived.
    bytes.resize(1);
    if (world.rank() == 2) messages.send(0, bytes);
    if (world.rank() == 0) messages.receive(2, bytes, fast::Deadline(limit));
    return 0;
  });
}
