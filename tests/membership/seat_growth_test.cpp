// Growth among scripted ranks: which round each worker makes is in the test's hand.
#include "membership/seat_growth.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;

namespace {

constexpr double growing_tick_s = 0.05, growing_news_s = 0.1;

/// Ranks of one host.
class GrowingRanks {
 public:
  GrowingRanks(int workers, int spares, GrowthRounds rounds = {})
      : memory_(workers + spares), made_(static_cast<std::size_t>(workers + spares)) {
    for (int rank = 0; rank < workers + spares; ++rank) {
      coordinators_.push_back(memory_.coordinator(rank, [this] { return died; }));
      maps_.emplace_back(memory_.board(rank), workers);
      seatings_.emplace_back(maps_.back(), coordinators_.back()->liveness(), 1.0, growing_news_s);
      growths_.emplace_back(*coordinators_.back(), seatings_.back());
      if (rank >= workers) continue;
      maps_.back().records().set_status(WorkerStatus::running);
      growths_.back().allow(rounds);
      CHECK(growths_.back().turn(0, ahead) == RoundDecision::go);
    }
  }

  SeatAssignment& seating(int rank) { return seatings_[static_cast<std::size_t>(rank)]; }
  RankMap& map(int rank) { return maps_[static_cast<std::size_t>(rank)]; }
  SeatGrowth& growth(int rank) { return growths_[static_cast<std::size_t>(rank)]; }

  void pass(double seconds) {
    for (double s = 0; s < seconds; s += growing_tick_s) {
      for (std::size_t rank = 0; rank < seatings_.size(); ++rank) {
        if (silent.contains(static_cast<int>(rank))) continue;
        coordinators_[rank]->tick(Seconds(growing_tick_s));
        seatings_[rank].tick();
        growths_[rank].advance();
      }
    }
  }

  /// The worker has made one round more.
  RoundDecision next(int rank) {
    const std::int64_t rounds = ++made_[static_cast<std::size_t>(rank)];
    map(rank).records().set_progress(rounds);
    return growth(rank).turn(rounds, ahead);
  }
  /// Rounds are made until the worker holds or enters.
  RoundDecision run(int rank, int most = 1000) {
    RoundDecision turn = RoundDecision::go;
    for (int k = 0; k < most && turn == RoundDecision::go; ++k) turn = next(rank);
    return turn;
  }
  RoundDecision look_again(int rank) { return growth(rank).turn(made(rank), ahead); }
  std::int64_t made(int rank) const { return made_[static_cast<std::size_t>(rank)]; }

  std::int64_t ahead = 0;
  std::set<int> silent;
  std::vector<int> died;

 private:
  testing::Records memory_;
  std::vector<std::int64_t> made_;
  std::vector<std::shared_ptr<Coordinator>> coordinators_;
  std::deque<RankMap> maps_;
  std::deque<SeatAssignment> seatings_;
  std::deque<SeatGrowth> growths_;
};

}  // namespace

TEST_CASE("nothing grows while nobody asks") {
  GrowingRanks ranks(3, 1);
  ranks.pass(3);
  CHECK(ranks.run(0, 50) == RoundDecision::go);
  CHECK_FALSE(ranks.seating(3).offered());
  CHECK(ranks.map(0).holder(3) == nobody);
  CHECK(ranks.map(0).seats() == 3);
}

TEST_CASE("workers settle on a round that none has begun, when the spare is on the new seat") {
  GrowingRanks ranks(3, 2);
  for (int k = 0; k < 7; ++k) ranks.next(1);
  ranks.growth(2).request();
  ranks.pass(growing_news_s + 0.2);
  const auto offer = ranks.seating(3).offered();
  REQUIRE(offer);
  CHECK(offer->seat == 3);
  CHECK(offer->growth == 1);
  CHECK_FALSE(ranks.seating(4).offered());
  CHECK_FALSE(ranks.growth(0).coming());  // nobody would be on the seat
  CHECK(ranks.next(0) == RoundDecision::go);
  REQUIRE(ranks.seating(3).take());
  ranks.pass(0.2);
  const auto coming = ranks.growth(0).coming();
  REQUIRE(coming);
  CHECK(coming->number == 1);
  CHECK(coming->round == 7 + 2);  // worker 1 was in round 7, and the round before is for preparing
  for (const int worker : {0, 1, 2}) {
    CHECK(ranks.run(worker) == RoundDecision::enter);
    CHECK(ranks.made(worker) == 9);
    CHECK(ranks.map(worker).seats() == 3);
    ranks.growth(worker).enter();
    CHECK(ranks.map(worker).seats() == 4);
    CHECK(ranks.map(worker).holder(3) == 3);
  }
  CHECK(ranks.map(0).taken().empty());
  CHECK(ranks.map(4).begun_growths() == 1);
}

TEST_CASE("a worker holds at its bound until all have answered") {
  GrowingRanks ranks(3, 1);
  ranks.ahead = 5;
  for (const int worker : {0, 1, 2}) ranks.look_again(worker);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).take());
  ranks.silent = {2};  // for less than the time after which it is gone
  ranks.pass(0.3);
  CHECK(ranks.run(0) == RoundDecision::hold);
  CHECK(ranks.made(0) == 6);
  CHECK_FALSE(ranks.growth(0).coming());
  ranks.silent.clear();
  ranks.pass(0.1);
  CHECK(ranks.look_again(0) == RoundDecision::go);
  CHECK(ranks.run(0) == RoundDecision::enter);
  CHECK(ranks.made(0) == 5 + 2);
}

TEST_CASE("a worker that is gone is not waited for, and enters when it comes back") {
  GrowingRanks ranks(3, 1);
  ranks.silent = {0};
  ranks.pass(1.5);
  ranks.growth(1).request();
  ranks.pass(growing_news_s + 1);
  REQUIRE(ranks.seating(3).offered());
  CHECK(ranks.seating(3).offered()->seat == 0);  // the lost worker's seat comes first
  REQUIRE(ranks.seating(3).take());
  ranks.map(3).records().set_status(WorkerStatus::running);
  ranks.pass(1);
  CHECK_FALSE(ranks.growth(1).coming());  // no spare is left
  CHECK(ranks.seating(1).spares_left() < 1);
  CHECK(ranks.run(1, 100) == RoundDecision::go);
}

TEST_CASE("when the newcomer dies before all have answered, nobody holds for ever") {
  GrowingRanks ranks(3, 1);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).take());
  ranks.silent = {1, 3};
  ranks.pass(0.1);
  CHECK(ranks.run(0) == RoundDecision::hold);
  ranks.died = {3};
  ranks.silent = {3};
  ranks.pass(0.2);
  CHECK(ranks.look_again(0) == RoundDecision::go);
  CHECK(ranks.run(0) == RoundDecision::enter);
}

TEST_CASE("the next spare joins in place of a newcomer that has died") {
  GrowingRanks ranks(3, 2);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).take());
  ranks.silent = {3};
  ranks.died = {3};
  ranks.pass(growing_news_s + 0.3);
  REQUIRE(ranks.seating(4).offered());
  CHECK(ranks.seating(4).offered()->seat == 3);
  REQUIRE(ranks.seating(4).take());
  CHECK(ranks.map(0).holder(3) == 4);
}

TEST_CASE("a growth is not settled while a spare takes a lost worker's seat, which answers, too") {
  GrowingRanks ranks(3, 2);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).take());
  ranks.silent = {2};
  ranks.died = {2};
  ranks.pass(growing_news_s + 0.06);
  CHECK_FALSE(ranks.seating(4).offered());  // what was settled meanwhile may be on its way
  ranks.pass(growing_news_s);
  REQUIRE(ranks.seating(4).offered());
  CHECK(ranks.seating(4).offered()->seat == 2);
  CHECK_FALSE(ranks.growth(0).coming());
  CHECK(ranks.run(0, 500) == RoundDecision::hold);  // it has answered before the spare was there
  const std::int64_t begins = ranks.made(0) + 20;
  ranks.growth(4).begin(begins);
  CHECK(ranks.map(4).seats() == 3);
  ranks.map(4).records().set_status(WorkerStatus::running);
  REQUIRE(ranks.seating(4).take());
  ranks.pass(0.2);
  CHECK_FALSE(ranks.growth(0).coming());
  ranks.growth(4).allow({});
  ranks.pass(0.2);
  REQUIRE(ranks.growth(0).coming());
  CHECK(ranks.growth(0).coming()->round == begins + 2);
}

TEST_CASE("a spare begins in the topology of its round") {
  GrowingRanks ranks(3, 2);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).take());
  ranks.pass(0.2);
  const auto coming = ranks.growth(0).coming();
  REQUIRE(coming);
  ranks.growth(4).begin(coming->round - 1);
  CHECK(ranks.map(4).entered() == 0);
  CHECK(ranks.growth(4).coming());
  ranks.growth(4).begin(coming->round);
  CHECK(ranks.map(4).entered() == 1);
  CHECK_FALSE(ranks.growth(4).coming());
}

TEST_CASE("growths begin in the rounds that the program allows") {
  GrowingRanks ranks(3, 1, {.first = 40, .every = 20});
  for (int k = 0; k < 45; ++k) ranks.next(1);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).take());
  ranks.pass(0.2);
  REQUIRE(ranks.growth(2).coming());
  CHECK(ranks.growth(2).coming()->round == 60);
  CHECK(ranks.run(0) == RoundDecision::enter);
  CHECK(ranks.made(0) == 60);
  ranks.growth(0).enter();
  CHECK_FALSE(ranks.growth(0).is_allowed());
}

TEST_CASE("no growth is settled from the round on that the program names, and nobody waits") {
  GrowingRanks ranks(3, 1, {.first = 40, .every = 20, .before = 60});
  for (int k = 0; k < 45; ++k) ranks.next(1);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).take());
  ranks.pass(0.2);
  for (const int worker : {0, 1, 2}) CHECK(ranks.run(worker, 200) == RoundDecision::go);
}

TEST_CASE("two growths follow each other, each with the next spare") {
  GrowingRanks ranks(2, 3);
  ranks.growth(0).request();
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  CHECK_FALSE(ranks.seating(3).offered());  // the second seat opens when the first is settled
  REQUIRE(ranks.seating(2).take());
  ranks.pass(growing_news_s + 0.2);
  for (const int worker : {0, 1}) {
    CHECK(ranks.run(worker) == RoundDecision::enter);
    ranks.growth(worker).enter();
  }
  ranks.map(2).enter(1);
  ranks.map(2).records().set_status(WorkerStatus::running);
  ranks.map(2).records().set_progress(ranks.made(0));
  ranks.growth(2).allow({});
  ranks.growth(2).turn(ranks.made(0), 0);
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(3).offered());
  CHECK(ranks.seating(3).offered()->seat == 3);
  REQUIRE(ranks.seating(3).take());
  for (const int worker : {0, 1}) ranks.look_again(worker);
  ranks.pass(0.2);
  REQUIRE(ranks.growth(1).coming());
  CHECK(ranks.growth(1).coming()->number == 2);
  CHECK(ranks.seating(0).spares_left() == 1);
}

TEST_CASE("a worker enters the growth that it was told of, though another is settled meanwhile") {
  GrowingRanks ranks(2, 2);
  ranks.growth(0).request();
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(2).take());
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.run(0) == RoundDecision::enter);
  ranks.growth(0).enter();
  REQUIRE(ranks.seating(3).take());
  REQUIRE(ranks.run(1) == RoundDecision::enter);
  ranks.map(2).enter(1);
  ranks.map(2).records().set_status(WorkerStatus::running);
  ranks.map(2).records().set_progress(ranks.made(1));
  ranks.growth(2).allow({});
  ranks.growth(2).turn(ranks.made(1), 0);
  ranks.look_again(0);
  ranks.silent = {1};  // it is suspended, for so long that the others settle without it
  ranks.pass(2);
  REQUIRE(ranks.growth(0).coming());
  CHECK(ranks.growth(0).coming()->number == 2);
  CHECK(ranks.growth(1).coming()->number == 1);
  ranks.growth(1).enter();
  CHECK(ranks.map(1).entered() == 1);
  CHECK(ranks.growth(1).entered_in() == ranks.made(1));
  CHECK(ranks.growth(1).coming()->number == 2);
}

TEST_CASE("a further growth waits for a worker that is slow, and for the one that joins") {
  GrowingRanks ranks(2, 2);
  ranks.growth(0).request();
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(2).take());
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.run(0) == RoundDecision::enter);
  ranks.growth(0).enter();
  REQUIRE(ranks.seating(3).take());
  // Neither has come to the first growth: worker 0 does not wait for them.
  ranks.pass(1);
  CHECK(ranks.run(0, 100) == RoundDecision::go);
  REQUIRE(ranks.run(1) == RoundDecision::enter);
  ranks.growth(1).enter();
  ranks.look_again(1);
  ranks.pass(1);  // worker 2 still prepares
  CHECK(ranks.run(0, 100) == RoundDecision::go);
  ranks.map(2).enter(1);
  ranks.map(2).records().set_status(WorkerStatus::running);
  ranks.map(2).records().set_progress(ranks.made(1));
  ranks.growth(2).allow({});
  ranks.growth(2).turn(ranks.made(1), 0);
  ranks.pass(1);
  CHECK(ranks.run(0, 1000) != RoundDecision::go);
}

TEST_CASE("ticks are quick while workers agree, and not for a growth that does not come") {
  GrowingRanks ranks(2, 1);
  const auto busy = [&] {
    int count = 0;
    for (int rank = 0; rank < 3; ++rank) {
      if (ranks.silent.contains(rank)) continue;
      count += ranks.seating(rank).is_busy() || ranks.growth(rank).is_busy() ? 1 : 0;
    }
    return count;
  };
  ranks.pass(0.2);
  CHECK(busy() == 0);
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  CHECK(busy() > 0);  // the spare is to take the seat
  REQUIRE(ranks.seating(2).take());
  CHECK(busy() == 0);
  ranks.silent = {1};
  ranks.pass(0.05);
  CHECK(ranks.growth(0).is_busy());  // it waits for the other worker's answer
  SECTION("all settle on a round that is far away") {
    ranks.silent.clear();
    ranks.growth(0).allow({.first = 1'000'000, .every = 1});
    ranks.pass(0.2);
    REQUIRE(ranks.growth(1).coming());
    CHECK(busy() == 0);
    ranks.map(0).records().set_progress(999'990);
    CHECK(busy() == 1);  // the spare begins soon
  }
  SECTION("the run ends") {
    ranks.silent.clear();
    for (const int worker : {0, 1}) ranks.map(worker).records().set_status(WorkerStatus::finished);
    ranks.growth(0).request();
    ranks.pass(0.2);
    CHECK(busy() == 0);
  }
  SECTION("the spare dies, and no other one is left") {
    ranks.silent.clear();
    ranks.pass(0.2);
    for (const int worker : {0, 1}) {
      REQUIRE(ranks.run(worker) == RoundDecision::enter);
      ranks.growth(worker).enter();
    }
    ranks.growth(0).request();
    ranks.died = {2};
    ranks.silent = {2};
    ranks.pass(0.2);
    CHECK(busy() == 0);
  }
}

TEST_CASE("without leave of the program nobody answers") {
  GrowingRanks ranks(2, 1, {.first = 0, .every = 5});
  ranks.growth(0).request();
  ranks.pass(growing_news_s + 0.2);
  REQUIRE(ranks.seating(2).take());
  ranks.pass(0.2);
  for (const int worker : {0, 1}) {
    REQUIRE(ranks.run(worker) == RoundDecision::enter);
    ranks.growth(worker).enter();
  }
  ranks.growth(0).request();
  ranks.pass(3);
  CHECK_FALSE(ranks.growth(0).coming());
  CHECK(ranks.run(0, 100) == RoundDecision::go);
}
