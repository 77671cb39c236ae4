// The seats of a run among scripted ranks: who shows signs of life is in the test's hand.
#include "membership/seat_assignment.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;

namespace {

constexpr double silent_after_s = 1, news_s = 0.1, tick_s = 0.05;

/// Ranks of one host, or of hosts that exchange copies only when news() is called.
class Run {
 public:
  explicit Run(int seats, int spares, bool apart = false, bool begun = true) : apart_(apart) {
    const auto ranks = static_cast<std::size_t>(seats + spares);
    const std::size_t copies = apart ? ranks : 1;
    for (std::size_t copy = 0; copy < copies; ++copy) memory_.emplace_back(seats + spares);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      boards_.push_back(memory_[apart ? rank : 0].board(static_cast<int>(rank)));
      maps_.emplace_back(boards_.back(), seats);
      liveness_.emplace_back(boards_.back(), word::beat);
      all_.emplace_back(maps_.back(), liveness_.back(), silent_after_s, news_s);
      if (begun && static_cast<int>(rank) < seats) begin(static_cast<int>(rank));
    }
    if (apart) news();
  }

  SeatAssignment& at(int rank) { return all_[static_cast<std::size_t>(rank)]; }
  RankMap& map(int rank) { return maps_[static_cast<std::size_t>(rank)]; }
  void begin(int rank) { map(rank).records().set_status(WorkerStatus::running); }
  void finish(int rank) { map(rank).records().set_status(WorkerStatus::finished); }

  void tick(int rank, double elapsed_s) {
    const auto r = static_cast<std::size_t>(rank);
    boards_[r].count(word::beat);
    liveness_[r].look(elapsed_s, died);
    all_[r].tick();
  }
  /// All living ranks tick for so long.
  void pass(double seconds) {
    for (double s = 0; s < seconds; s += tick_s) {
      for (std::size_t rank = 0; rank < all_.size(); ++rank) {
        if (!silent.contains(static_cast<int>(rank))) tick(static_cast<int>(rank), tick_s);
      }
      if (apart_ && !cut) news();
    }
  }
  /// Everybody learns all that others say.
  void news() {
    const std::size_t ranks = all_.size();
    std::vector<std::uint64_t> words(boards_.front().words_of_all());
    for (std::size_t from = 0; from < ranks; ++from) {
      boards_[from].copy_to(words);
      for (std::size_t to = 0; to < ranks; ++to) {
        std::vector<bool> here(ranks);
        here[to] = true;
        boards_[to].take_over(words, here);
      }
    }
  }
  /// A spare that is offered a seat begins to train there.
  void sit(int spare) {
    REQUIRE(at(spare).offered());
    map(spare).records().set_status(WorkerStatus::running);
    REQUIRE(at(spare).take());
    if (apart_ && !cut) news();
  }

  std::set<int> silent;
  std::vector<int> died;
  bool cut = false;

 private:
  bool apart_;
  std::deque<testing::Records> memory_;
  std::vector<RecordBoard> boards_;
  std::deque<RankMap> maps_;
  std::deque<Liveness> liveness_;
  std::deque<SeatAssignment> all_;
};

}  // namespace

TEST_CASE("no spare is offered a seat while all workers live") {
  Run run(3, 2);
  run.pass(10);
  for (int seat = 0; seat < 3; ++seat) CHECK(run.map(4).holder(seat) == seat);
  CHECK_FALSE(run.at(3).offered());
  CHECK_FALSE(run.at(4).offered());
  CHECK_FALSE(run.map(3).has_seat());
  CHECK(run.map(2).has_seat());
}

TEST_CASE("the lowest spare takes the seat of a silent worker, and all see it there") {
  Run run(3, 2);
  run.map(1).records().set_progress(17);
  run.silent = {1};
  run.pass(silent_after_s - 3 * tick_s);
  CHECK_FALSE(run.at(3).offered());
  run.pass(news_s + 5 * tick_s);
  CHECK_FALSE(run.at(4).offered());
  const auto offer = run.at(3).offered();
  REQUIRE(offer);
  CHECK(offer->seat == 1);
  CHECK(offer->version == 1);
  CHECK(offer->rounds == 17);
  CHECK(run.map(0).holder(1) == 1);  // until the spare is ready
  CHECK(run.map(3).own_seat() == 1);
  CHECK_FALSE(run.map(3).seat_of(3));
  CHECK_FALSE(run.map(4).own_seat());
  CHECK(run.at(0).is_awaited(1));
  run.sit(3);
  for (const int rank : {0, 1, 2, 3, 4}) CHECK(run.map(rank).holder(1) == 3);
  CHECK(run.map(3).has_seat());
  CHECK_FALSE(run.map(1).has_seat());
  CHECK(run.map(0).taken() == std::vector<int>{1});
  run.pass(1);
  CHECK_FALSE(run.at(0).is_awaited(1));
  for (const int rank : {0, 3, 4}) CHECK_FALSE(run.at(rank).is_busy());  // nothing is under way
}

TEST_CASE("a death that the launcher reports frees the seat at once") {
  Run run(3, 1);
  run.died = {2};
  run.silent = {2};
  run.pass(news_s + 4 * tick_s);
  REQUIRE(run.at(3).offered());
  CHECK(run.at(3).offered()->seat == 2);
}

TEST_CASE("two spares take two seats, each one of them") {
  Run run(4, 2);
  run.silent = {0, 3};
  run.pass(silent_after_s + news_s + 5 * tick_s);
  REQUIRE(run.at(4).offered());
  REQUIRE(run.at(5).offered());
  CHECK(run.at(4).offered()->seat == 0);
  CHECK(run.at(5).offered()->seat == 3);
}

TEST_CASE("a spare that died asleep is passed over") {
  Run run(2, 2);
  run.silent = {2};
  run.pass(5);
  run.silent = {0, 2};
  run.pass(silent_after_s + news_s + 5 * tick_s);
  REQUIRE(run.at(3).offered());
  CHECK(run.at(3).offered()->seat == 0);
}

TEST_CASE("a spare that dies while it claims a seat leaves it to the next one") {
  Run run(3, 2);
  run.silent = {1};
  run.pass(silent_after_s + 3 * tick_s);
  run.silent = {1, 3};
  run.pass(2 * silent_after_s + news_s);
  REQUIRE(run.at(4).offered());
  CHECK(run.at(4).offered()->seat == 1);
}

TEST_CASE("a seat can be taken again and again, and its version grows") {
  Run run(3, 2);
  run.silent = {1};
  run.pass(2 * silent_after_s);
  run.sit(3);
  run.silent = {1, 3};
  run.pass(2 * silent_after_s);
  REQUIRE(run.at(4).offered());
  CHECK(run.at(4).offered()->version == 2);
  run.sit(4);
  CHECK(run.map(0).holder(1) == 4);
  CHECK_FALSE(run.map(3).has_seat());
}

TEST_CASE("a holder that comes back before its seat is taken keeps it") {
  Run run(3, 1);
  run.silent = {1};
  run.pass(silent_after_s + 2 * tick_s);
  run.silent.clear();
  run.pass(1);
  CHECK_FALSE(run.at(3).offered());
  CHECK(run.map(3).holder(1) == 1);
  run.silent = {1};
  run.pass(2 * silent_after_s);
  CHECK(run.at(3).offered());  // the spare is free again
}

TEST_CASE("a worker that has finished leaves no vacant seat") {
  Run run(3, 1);
  run.finish(1);
  run.silent = {1};
  run.pass(5);
  CHECK_FALSE(run.at(3).offered());
  CHECK_FALSE(run.at(3).all_have_ended());
  run.finish(0);
  run.finish(2);
  CHECK(run.at(3).all_have_ended());
}

TEST_CASE("a seat is not taken when nobody is left to train with") {
  Run run(2, 1);
  run.finish(0);
  run.silent = {1};
  run.pass(5);
  CHECK_FALSE(run.at(2).offered());
  CHECK_FALSE(run.at(0).is_awaited(1));
  CHECK(run.at(2).all_have_ended());
}

TEST_CASE("spares whose news cross are both seated, and all agree that the lower one is") {
  Run run(3, 2, true);
  run.pass(1);
  run.cut = true;  // spare 3 sees nobody's signs of life, nor do others see its
  run.pass(silent_after_s + news_s + 10 * tick_s);
  // Every rank is alone: spares find no worker that trains.
  CHECK_FALSE(run.at(3).offered());
  run.cut = false;
  run.silent = {1};
  run.pass(silent_after_s + 4 * tick_s);
  run.cut = true;
  for (const int spare : {3, 4}) {
    run.map(spare).records().set_claim({0, 5, 1, SeatClaim::Phase::claiming});
    REQUIRE(run.at(spare).take());
  }
  CHECK(run.map(3).has_seat());
  CHECK(run.map(4).has_seat());
  run.news();
  for (const int rank : {0, 2, 3, 4}) CHECK(run.map(rank).holder(1) == 3);
  CHECK_FALSE(run.map(4).has_seat());
}

TEST_CASE("a worker that dies before all have met leaves no vacant seat") {
  Run run(3, 1, false, false);
  run.died = {1};
  run.silent = {1};
  run.pass(5);
  CHECK_FALSE(run.map(3).has_begun());
  CHECK_FALSE(run.at(3).offered());
  run.begin(0);  // all have met, worker 1 just before it died
  run.pass(1);
  CHECK(run.map(3).has_begun());
  REQUIRE(run.at(3).offered());
  CHECK(run.at(3).offered()->seat == 1);
}

TEST_CASE("a spare looks again before it takes a seat, and stays free if the holder is back") {
  Run run(3, 1);
  run.silent = {1};
  run.pass(2 * silent_after_s);
  REQUIRE(run.at(3).offered());
  run.at(3).accept();  // it prepares
  run.silent.clear();
  run.pass(1);
  CHECK_FALSE(run.at(3).take());
  CHECK(run.map(1).has_seat());
  CHECK_FALSE(run.map(3).has_seat());
  run.silent = {0};
  run.pass(2 * silent_after_s);
  REQUIRE(run.at(3).offered());
  CHECK(run.at(3).offered()->seat == 0);
  run.sit(3);
  CHECK(run.map(1).holder(0) == 3);
}

TEST_CASE("a holder that beats at the last moment keeps its seat") {
  Run run(2, 1);
  run.silent = {1};
  run.pass(2 * silent_after_s);
  REQUIRE(run.at(2).offered());
  run.tick(1, 0);
  CHECK_FALSE(run.at(2).take());
  CHECK(run.map(1).has_seat());
}

TEST_CASE("a spare that leaves its seat is read no more, and the next spare takes the seat") {
  Run run(3, 2);
  run.silent = {1};
  run.pass(2 * silent_after_s);
  run.sit(3);
  run.at(3).release();
  CHECK(run.map(0).holder(1) == 3);
  CHECK(run.map(0).is_replaced(3));
  CHECK(run.map(0).taken().empty());
  CHECK_FALSE(run.map(3).has_seat());
  CHECK(run.map(3).own_seat() == 1);
  CHECK(run.map(0).seat_of(3) == 1);
  CHECK_FALSE(run.map(0).takes_part(3));
  run.pass(1);
  REQUIRE(run.at(4).offered());
  CHECK(run.at(4).offered()->version == 2);
  run.sit(4);
  CHECK(run.map(0).holder(1) == 4);
  CHECK(run.map(0).takes_part(4));
}

TEST_CASE("ranks that were lost are told from those that have finished and gone") {
  Run run(2, 2);
  run.finish(0);
  run.silent = {0};
  run.pass(5);
  CHECK_FALSE(run.at(1).any_is_lost());
  run.silent = {0, 3};
  run.pass(5);
  CHECK(run.at(1).any_is_lost());
}
