// Rank 0 and the others exchange bytes all the time; the others die one after another. Rank 0 must
// live on: dying_peers_test.sh runs this program again and again.
//   dying_peers reads|messages SEED
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "mpi/launcher.hpp"
#include "mpi/remote_window.hpp"
#include "mpi/request.hpp"

namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 16;
constexpr std::size_t chunks = 4;
constexpr std::size_t message_bytes = std::size_t{1} << 19;
constexpr fast::Seconds exchanging{0.7};

/// Operations with one rank, several under way at a time, until that rank fails.
class Traffic {
 public:
  explicit Traffic(std::size_t under_way) : requests_(under_way) {}
  virtual ~Traffic() = default;
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void advance() {
    if (failed_) return;
    try {
      for (std::size_t i = 0; i < requests_.size(); ++i) advance(i);
    } catch (const fast::Error&) {
      failed_ = true;
    }
  }
  std::size_t done() const { return done_; }

 protected:
  virtual fast::mpi::Request begin(std::size_t i) = 0;

 private:
  void advance(std::size_t i) {
    if (requests_[i].is_under_way() && !requests_[i].test()) return;
    requests_[i] = begin(i);
    ++done_;
  }

  std::vector<fast::mpi::Request> requests_;
  std::size_t done_ = 0;
  bool failed_ = false;
};

class Reads : public Traffic {
 public:
  Reads(const fast::mpi::RemoteWindow& window, int rank)
      : Traffic(chunks), window_(window), rank_(rank), into_(chunks * chunk_bytes) {}

 private:
  fast::mpi::Request begin(std::size_t i) override {
    return window_.get(rank_, i * chunk_bytes, into_.data() + i * chunk_bytes, chunk_bytes);
  }

  const fast::mpi::RemoteWindow& window_;
  int rank_;
  std::vector<std::byte> into_;
};

/// Half of the requests send, as frames are sent between hosts; the others receive.
class LongMessages : public Traffic {
 public:
  LongMessages(const fast::mpi::Messages& messages, int rank)
      : Traffic(2 * chunks), messages_(messages), rank_(rank), bytes_(2 * chunks * message_bytes) {}

 private:
  fast::mpi::Request begin(std::size_t i) override {
    std::byte* const at = bytes_.data() + i * message_bytes;
    return i < chunks ? messages_.send(rank_, 0, at, message_bytes)
                      : messages_.receive(rank_, 0, at, message_bytes);
  }

  const fast::mpi::Messages& messages_;
  int rank_;
  std::vector<std::byte> bytes_;
};

void die_later(int rank, std::uint64_t seed) {
  const std::uint64_t after_ms = 100 * static_cast<std::uint64_t>(rank) +
                                 fast::mix_seed(seed, static_cast<std::uint64_t>(rank)) % 100;
  std::thread([after_ms] {
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    kill(getpid(), SIGKILL);
  }).detach();
}

/// With rank 0, or of rank 0 with all others.
template <class Kind, class Through>
int exchange(const fast::mpi::Communicator& world, const Through& through, std::uint64_t seed) {
  fast::mpi::notify_launcher(fast::mpi::LauncherNote::training_began);
  if (world.rank() > 0) die_later(world.rank(), seed);
  std::deque<Kind> peers;
  for (int peer = 0; peer < world.size(); ++peer) {
    if (peer != world.rank() && (peer == 0 || world.rank() == 0)) peers.emplace_back(through, peer);
  }
  for (const fast::Deadline deadline(exchanging); !deadline.expired();) {
    for (Kind& peer : peers) peer.advance();
  }
  for (const Kind& peer : peers) std::printf("lives after %zu operations\n", peer.done());
  std::fflush(stdout);
  _exit(0);
}

int exchange_reads(const fast::mpi::Communicator& world, std::uint64_t seed) {
  std::vector<std::byte> memory(chunks * chunk_bytes);
  const fast::mpi::RemoteWindow window(world, memory.data(), memory.size(), nullptr,
                                       fast::Deadline(fast::Seconds(20)));
  return exchange<Reads>(world, window, seed);
}

int exchange_messages(const fast::mpi::Communicator& world, std::uint64_t seed) {
  const fast::mpi::Messages messages(world, fast::Deadline(fast::Seconds(20)));
  return exchange<LongMessages>(world, messages, seed);
}

}  // namespace

int main(int argc, char** argv) {
  const bool reads = argc > 1 && std::string_view(argv[1]) == "reads";
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  return fast::mpi::run(argc, argv, [=](const auto& world) {
    return reads ? exchange_reads(world, seed) : exchange_messages(world, seed);
  });
}
