#include "train/control/agreement_records.hpp"

#include "support/catch.hpp"

using namespace fast::train;

namespace {

/// As one of two workers knows them, of other hosts: a memory of its own.
struct Known {
  std::vector<AgreementRecord> memory = std::vector<AgreementRecord>(2);
  AgreementRecords records;
  explicit Known(int rank) : records({&memory[0], &memory[1]}, rank) {}
  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> all(2 * AgreementRecord::words);
    copy(records, all);
    return all;
  }
};

}  // namespace

TEST_CASE("records keep a request's number beside its round") {
  Known zero(0);
  zero.records.want(Request::save, 3);
  zero.records.answer(Request::save, {3, 1'000'000'000});
  zero.records.settle(Request::stop, {1, 17});
  CHECK(zero.records.newest_wanted(Request::save) == 3);
  CHECK(zero.records.newest_wanted(Request::stop) == 0);
  CHECK(zero.records.answer_of(0, Request::save).number == 3);
  CHECK(zero.records.answer_of(0, Request::save).round == 1'000'000'000);
  CHECK(zero.records.newest_settled(Request::stop).round == 17);
}

TEST_CASE("a worker's marks leave its stage and its rounds as they are") {
  Known zero(0);
  CHECK(zero.records.is_running(0));
  zero.records.end(Stage::stopped, 60);
  for (const Mark mark : {Mark::concluded, Mark::unsaved}) zero.records.mark(mark);
  CHECK_FALSE(zero.records.is_running(0));
  CHECK(zero.records.any_was_stopped());
  CHECK(zero.records.rounds_of_ended(0) == 60);
  CHECK(zero.records.has(0, Mark::unsaved));
  CHECK_FALSE(zero.records.has(0, Mark::saved));
  CHECK(zero.records.is_running(1));
}

TEST_CASE("whom a worker has given up is known to all, to that worker too") {
  Known zero(0), one(1);
  zero.records.give_up(1);
  take_over(one.records, zero.words(), {false, true});
  CHECK(one.records.is_given_up(1));
  CHECK_FALSE(one.records.is_given_up(0));
}

TEST_CASE("an older copy of a record changes nothing, and nobody's copy changes one's own record") {
  Known zero(0), one(1);
  const std::vector<bool> only_one = {false, true};
  const auto before = zero.words();
  zero.records.beat();
  zero.records.settle(Request::save, {1, 25});
  take_over(one.records, zero.words(), only_one);
  CHECK(one.records.beat_of(0) == 1);
  CHECK(one.records.newest_settled(Request::save).round == 25);
  take_over(one.records, before, only_one);
  CHECK(one.records.beat_of(0) == 1);
  one.records.want(Request::stop, 1);
  take_over(one.records, zero.words(), only_one);
  CHECK(one.records.wanted(Request::stop) == 1);
}
