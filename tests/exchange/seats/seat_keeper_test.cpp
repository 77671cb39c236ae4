// The keepers of the seats of a run whose ranks are all on different hosts: what they tell each
// other passes only while the test lets it.
#include "exchange/seats/seat_keeper.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "exchange/group_impl.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;

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

class Cards final : public Notes {
 public:
  Cards(Post& post, int rank) : post_(post), rank_(static_cast<std::size_t>(rank)) {}
  bool send(int worker, std::span<const std::byte> note) override {
    const std::lock_guard lock(post_.mutex);
    if (post_.closed) return false;
    post_.boxes[static_cast<std::size_t>(worker)].emplace_back(note.begin(), note.end());
    return true;
  }
  bool receive(std::span<std::byte> note) override {
    const std::lock_guard lock(post_.mutex);
    auto& box = post_.boxes[rank_];
    if (box.empty()) return false;
    std::copy(box.front().begin(), box.front().end(), note.begin());
    box.pop_front();
    return true;
  }

 private:
  Post& post_;
  std::size_t rank_;
};

/// Each rank has copies of its own of all memory.
class Apart final : public GroupImpl {
 public:
  Apart(Post& post, int rank) : post_(post), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(post_.boxes.size()); }
  std::string name() const override { return "apart"; }
  std::vector<int> hosts() const override {
    std::vector<int> hosts(post_.boxes.size());
    std::iota(hosts.begin(), hosts.end(), 0);
    return hosts;
  }
  std::vector<std::string> all_gather(std::string_view, const Deadline&,
                                      std::string_view) override {
    return {};
  }
  Region allocate(std::size_t bytes, const Deadline&) override {
    const auto memory =
        std::make_shared<std::vector<std::uint64_t>>(post_.boxes.size() * bytes / 8);
    Region region;
    region.owner = memory;
    for (std::size_t rank = 0; rank < post_.boxes.size(); ++rank)
      region.parts.push_back(reinterpret_cast<std::byte*>(memory->data()) + rank * bytes);
    return region;
  }
  std::unique_ptr<Notes> open_notes(std::size_t, const Deadline&) override {
    return std::make_unique<Cards>(post_, rank_);
  }

 private:
  Post& post_;
  int rank_;
};

/// Two workers and a spare.
struct Keepers {
  Post post{3};
  std::vector<std::unique_ptr<SeatKeeper>> all;

  Keepers() {
    for (int rank = 0; rank < 3; ++rank) {
      all.push_back(std::make_unique<SeatKeeper>(
          GroupImpl::group(std::make_shared<Apart>(post, rank)), 2, Deadline(Seconds(30))));
      all.back()->watch(Seconds(30), 1);
    }
    for (int worker = 0; worker < 2; ++worker) {
      at(worker).note_status(WorkerStatus::running);
      at(worker).growth().allow({});
      make(worker, 1);
    }
  }
  SeatKeeper& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }

  /// So many rounds are made.
  GrowthTurn make(int worker, std::int64_t rounds) {
    at(worker).note_progress(rounds);
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
  Keepers keepers;
  const std::int64_t round = keepers.grow();
  keepers.make(1, round - 1);
  keepers.post.close(true);
  REQUIRE(keepers.make(0, round) == GrowthTurn::enter);
  keepers.at(0).growth().enter();
  for (int worker = 0; worker < 2; ++worker) keepers.at(worker).note_status(WorkerStatus::finished);
  CHECK(keepers.at(0).joined() == std::vector<int>{2});
  CHECK(keepers.at(1).joined().empty());
  std::atomic<bool> waits{false};
  std::thread mends([&] {
    while (!waits) std::this_thread::yield();
    keepers.post.close(false);
  });
  waits = true;
  keepers.at(1).await_end();
  mends.join();
  CHECK(keepers.at(1).joined() == std::vector<int>{2});
}
