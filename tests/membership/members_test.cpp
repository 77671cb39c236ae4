// The members of a run whose ranks are all on different hosts: what they tell each
// other passes only while the test lets it.
#include "membership/members.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;

namespace {

/// Between all ranks. Nothing arrives while it is closed.
struct Post {
  explicit Post(std::size_t ranks) : boxes(ranks) {}
  std::mutex mutex;
  std::vector<std::deque<std::vector<std::byte>>> boxes;
  bool closed = false;

  void close(bool now) {
    const std::lock_guard lock(mutex);
    closed = now;
    for (auto& box : boxes) box.clear();
  }
};

class Cards final : public Datagrams {
 public:
  Cards(Post& post, int rank) : post_(post), rank_(static_cast<std::size_t>(rank)) {}
  bool send(int rank, std::span<const std::byte> datagram) override {
    const std::lock_guard lock(post_.mutex);
    if (post_.closed) return false;
    post_.boxes[static_cast<std::size_t>(rank)].emplace_back(datagram.begin(), datagram.end());
    return true;
  }
  bool receive(std::span<std::byte> datagram) override {
    const std::lock_guard lock(post_.mutex);
    auto& box = post_.boxes[rank_];
    if (box.empty()) return false;
    std::copy(box.front().begin(), box.front().end(), datagram.begin());
    box.pop_front();
    return true;
  }

 private:
  Post& post_;
  std::size_t rank_;
};

/// Two workers and a spare. Each rank has copies of its own of all records.
struct Hosts {
  Post post{3};
  std::deque<testing::Records> memory;
  std::vector<std::unique_ptr<Members>> all;

  Hosts() {
    for (int rank = 0; rank < 3; ++rank) {
      auto coordinator =
          std::make_shared<Coordinator>(Reach{.rank = rank,
                                              .parts = memory.emplace_back(3).parts(),
                                              .owner = nullptr,
                                              .hosts = {0, 1, 2},
                                              .datagrams = std::make_unique<Cards>(post, rank),
                                              .died = {}},
                                        record_format());
      all.push_back(std::make_unique<Members>(coordinator, 2));
      all.back()->watch(Seconds(30), 1, 1);
      coordinator->start();
    }
    for (int worker = 0; worker < 2; ++worker) {
      at(worker).map().records().set_status(WorkerStatus::running);
      at(worker).growth().allow({});
      make(worker, 1);
    }
  }
  Members& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }

  /// So many rounds are made.
  RoundDecision make(int worker, std::int64_t rounds) {
    at(worker).map().records().set_progress(rounds);
    return at(worker).growth().take_turn(rounds, 1000, Seconds(30));
  }
  /// Returns its round, which all know.
  std::int64_t grow() {
    at(0).growth().request();
    REQUIRE(at(2).wait_for_seat([] {}));
    REQUIRE(at(2).take());
    std::int64_t round = 0;
    for (int worker = 0; worker < 2; ++worker) {
      const Deadline deadline(Seconds(30));
      while (!at(worker).growth().coming() && !deadline.expired()) std::this_thread::yield();
      REQUIRE(at(worker).growth().coming());
      round = at(worker).growth().coming()->round;
    }
    return round;
  }
};

}  // namespace

TEST_CASE("who has joined is the same on all hosts, though some stop before the growth's round") {
  Hosts hosts;
  const std::int64_t round = hosts.grow();
  hosts.make(1, round - 1);
  hosts.post.close(true);
  REQUIRE(hosts.make(0, round) == RoundDecision::enter);
  hosts.at(0).growth().enter();
  for (int worker = 0; worker < 2; ++worker)
    hosts.at(worker).map().records().set_status(WorkerStatus::finished);
  CHECK(hosts.at(0).map().joined() == std::vector<int>{2});
  CHECK(hosts.at(1).map().joined().empty());
  std::atomic<bool> waits{false};
  std::thread mends([&] {
    while (!waits) std::this_thread::yield();
    hosts.post.close(false);
  });
  waits = true;
  hosts.at(1).await_end();
  mends.join();
  CHECK(hosts.at(1).map().joined() == std::vector<int>{2});
}
