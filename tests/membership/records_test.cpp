#include "membership/records.hpp"

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;
using fast::testing::Records;

namespace {

constexpr int known_ranks = 3;

/// Of another host: a memory of its own.
struct Known {
  Records memory{known_ranks};
  std::vector<std::uint64_t> words(int rank) {
    std::vector<std::uint64_t> all(memory.board(rank).words_of_all());
    memory.board(rank).copy_to(all);
    return all;
  }
};

const std::vector<bool> only_first = {true, false, false};

}  // namespace

TEST_CASE("memory of zeros is a run of ranks that have no claim and have not begun") {
  Records memory(known_ranks);
  const SeatRecords seats = memory.seats_of(0);
  const RunRecords run(memory.board(0));
  for (int rank = 0; rank < known_ranks; ++rank) {
    CHECK(seats.claim(rank) == SeatClaim{});
    CHECK(seats.status(rank) == WorkerStatus::starting);
    CHECK(seats.progress(rank) == 0);
    CHECK(run.is_running(rank));
    CHECK_FALSE(run.is_given_up(rank));
  }
}

TEST_CASE("a claim reads as it was written, and its word grows even when it is withdrawn") {
  Records memory(known_ranks);
  SeatRecords records = memory.seats_of(2);
  records.set_claim({0, 7, 1'000'000, SeatClaim::Phase::seated});
  CHECK(records.claim(2) == SeatClaim{1, 7, 1'000'000, SeatClaim::Phase::seated});
  const std::uint64_t before = memory.board(2).own(word::claim);
  records.set_claim({});
  CHECK(records.claim(2).phase == SeatClaim::Phase::none);
  CHECK(memory.board(2).own(word::claim) > before);
}

TEST_CASE("copies raise the words of ranks elsewhere, and never those of this host") {
  Known there, here;
  SeatRecords source = there.memory.seats_of(1);
  source.set_status(WorkerStatus::running);
  source.set_progress(40);
  source.set_republished(2);
  source.set_work({.began_in = 0});
  source.set_work({.made_up = 7});
  there.memory.board(1).count(word::beat);
  there.memory.seats_of(0).set_progress(99);
  const auto words = there.words(1);
  const RecordBoard board = here.memory.board(0);
  SeatRecords target = here.memory.seats_of(0);
  target.set_progress(5);
  board.take_over(words, only_first);
  CHECK(target.progress(0) == 5);
  CHECK(target.progress(1) == 40);
  CHECK(target.republished(1) == 2);
  CHECK(target.work_of(1).began_in == 0);
  CHECK_FALSE(target.work_of(2).began_in.has_value());
  CHECK(target.work_of(1).made_up == 7);
  CHECK(target.status(1) == WorkerStatus::running);
  CHECK(board.read(1, word::beat) == 1);
  here.memory.seats_of(1).set_progress(50);
  board.take_over(words, only_first);  // an older copy
  CHECK(target.progress(1) == 50);
}

TEST_CASE("a request's number stands beside its round, and requests do not mix") {
  Records memory(known_ranks);
  RoundAgreement saves(memory.board(0), word::save), stops(memory.board(0), word::stop);
  saves.propose(3);
  saves.bind({3, 1'000'000'000});
  stops.settle({1, 17});
  CHECK(saves.proposed() == 3);
  CHECK(stops.proposed() == 0);
  CHECK(saves.bound_of(0) == NumberedRound{3, 1'000'000'000});
  CHECK(saves.settled().number == 0);
  CHECK(stops.settled() == NumberedRound{1, 17});
  CHECK(stops.settled_by(1).number == 0);
}

TEST_CASE("the lowest rank settles when all that are awaited have answered") {
  using Voice = RoundAgreement::Voice;
  Records memory(known_ranks);
  std::vector<Voice> voices(known_ranks, Voice::settles);
  const auto voice_of = [&](int rank) { return voices[static_cast<std::size_t>(rank)]; };
  const auto last = [&](int rank) {
    return RoundAgreement(memory.board(rank), word::save).last_bound(1, voice_of);
  };
  const auto bind = [&](int rank, std::int64_t round) {
    RoundAgreement(memory.board(rank), word::save).bind({1, round});
  };
  bind(0, 4);
  bind(2, 9);
  CHECK_FALSE(last(0));  // rank 1 has not answered
  voices[1] = Voice::counts;
  CHECK(last(0) == 9);
  CHECK_FALSE(last(2));  // rank 0 settles
  bind(1, 11);
  CHECK(last(0) == 11);
  voices[0] = Voice::awaited;  // it answers, but does not settle
  voices[1] = Voice::none;
  CHECK_FALSE(last(0));
  CHECK(last(2) == 9);
  voices[0] = Voice::none;
  CHECK(last(2) == 9);
}

TEST_CASE(
    "a rank holds behind its bound until the request is settled, and passes on what it heard") {
  Records memory(known_ranks);
  RoundAgreement zero(memory.board(0), word::save), one(memory.board(1), word::save);
  one.propose(1);
  zero.bind({1, 6});
  CHECK(zero.is_open());
  CHECK_FALSE(zero.holds(6));
  CHECK(zero.holds(7));
  CHECK_FALSE(one.holds(7));
  one.settle({1, 8});
  CHECK_FALSE(zero.holds(7));
  CHECK_FALSE(zero.is_open());
  CHECK(zero.settled_by(0).number == 0);
  zero.pass_on();
  CHECK(zero.settled_by(0) == NumberedRound{1, 8});
}

TEST_CASE("a worker's marks leave its stage and its rounds as they are") {
  Records memory(known_ranks);
  RunRecords zero(memory.board(0));
  zero.end(Stage::stopped, 60);
  for (const Mark mark : {Mark::concluded, Mark::unsaved}) zero.mark(mark);
  CHECK_FALSE(zero.is_running(0));
  CHECK(zero.any_has_come_to(Stage::stopped));
  CHECK(zero.rounds_of_ended(0) == 60);
  CHECK(zero.has(0, Mark::unsaved));
  CHECK_FALSE(zero.has(0, Mark::saved));
  CHECK(zero.is_running(1));
}

TEST_CASE("whom a worker has given up is known to all, to that worker too") {
  Known zero, one;
  RunRecords(zero.memory.board(0)).give_up(1);
  one.memory.board(1).take_over(zero.words(0), {false, true, false});
  const RunRecords run(one.memory.board(1));
  CHECK(run.is_given_up(1));
  CHECK_FALSE(run.is_given_up(0));
}

TEST_CASE("shares are taken over with the records") {
  Records there(2, 2), here(2, 2);
  there.board(0).raise(word::first_share + 1, 17);
  std::vector<std::uint64_t> words(there.board(0).words_of_all());
  there.board(0).copy_to(words);
  here.board(1).take_over(words, {false, true});
  CHECK(here.board(1).read(0, word::first_share + 1) == 17);
}
