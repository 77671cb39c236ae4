#include "train/run/training_cursor.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"

using namespace fast;
using train::TrainingCursor;

TEST_CASE("a position advances over the ends of epochs, by several rounds too") {
  TrainingCursor position(15);
  position.advance(14);
  CHECK(position.epoch() == 0);
  CHECK(position.round() == 14);
  position.advance(1);
  CHECK(position.epoch() == 1);
  CHECK(position.round() == 0);
  position.advance(37);
  CHECK(position.epoch() == 3);
  CHECK(position.round() == 7);
  CHECK(position.rounds() == 52);
}

TEST_CASE("a position goes back, not beyond the beginning") {
  TrainingCursor position(20);
  position.take_place(3, 0, 0);
  position.count_from(60, 60);
  position.advance(-10);
  CHECK(position.epoch() == 2);
  CHECK(position.round() == 10);
  CHECK(position.rounds() == 50);
  position.advance(-60);
  CHECK(position.epoch() == 0);
  CHECK(position.round() == 0);
  CHECK(position.rounds() == 0);
}

TEST_CASE("a position is taken from a checkpoint, in part of an epoch of another length") {
  TrainingCursor saved(20);
  saved.advance(30);
  TrainingCursor same(20), other(8);
  same.take_place(saved.to_metadata());
  CHECK(same.epoch() == 1);
  CHECK(same.round() == 10);
  other.take_place(saved.to_metadata());
  CHECK(other.epoch() == 1);
  CHECK(other.round() == 4);
  same.count_from(30, 31);
  same.advance(2);
  CHECK(same.rounds() == 32);
  CHECK(same.own_rounds() == 33);
  CHECK(same.resumed_from() == 30);
}

TEST_CASE("a position follows from the round in which some epoch begins") {
  TrainingCursor position(15);
  position.take_place(5, 95, 95);
  CHECK(position.epoch() == 5);
  CHECK(position.round() == 0);
  position.take_place(5, 95, 94);
  CHECK(position.epoch() == 4);
  CHECK(position.round() == 14);
  position.take_place(5, 95, 80);
  CHECK(position.epoch() == 4);
  CHECK(position.round() == 0);
  position.take_place(5, 95, 112);
  CHECK(position.epoch() == 6);
  CHECK(position.round() == 2);
}

TEST_CASE("the epoch of an earlier round follows from a position") {
  TrainingCursor position(15);
  position.advance(4 * 15 + 3);
  CHECK(position.epoch_of_past(0) == 4);
  CHECK(position.epoch_of_past(3) == 4);
  CHECK(position.epoch_of_past(4) == 3);
  CHECK(position.epoch_of_past(33) == 2);
}

TEST_CASE("after a growth, epochs have another number of rounds") {
  TrainingCursor position(20);
  position.advance(40);
  position.begin_epochs_of(15);
  CHECK(position.epoch() == 2);
  position.advance(16);
  CHECK(position.epoch() == 3);
  CHECK(position.round() == 1);
  CHECK(position.rounds() == 56);
}

TEST_CASE("a worker that was away when the run grew comes to the place of the others") {
  TrainingCursor there(20), away(20);
  there.advance(40);
  away.advance(39);
  there.begin_epochs_of(15);  // in round 40
  there.advance(33);
  away.advance(34);
  away.begin_epochs_of(15);
  away.take_place(5, 85, 73);  // as the others say of their next epoch
  CHECK(away.epoch() == there.epoch());
  CHECK(away.round() == there.round());
  CHECK(away.rounds() == there.rounds());
}

TEST_CASE("metadata without a position are no run's") {
  TrainingCursor position(20);
  CHECK_THROWS_WITH(position.take_place({{"fast.epoch", "1"}}),
                    ContainsSubstring("fast.epoch_round"));
}

TEST_CASE("a position on a stream is kept as the number of the next sample, for any workers") {
  const auto order_of = [](int workers, std::size_t rounds) {
    return std::make_shared<data::StreamOrder>(workers, 0, 8, rounds);
  };
  const auto first = order_of(3, 20);
  TrainingCursor saved(20, first);
  CHECK(!saved.to_metadata().contains("fast.stream_next"));  // not begun
  first->begin(101, 0, 0);
  first->set_stream("one");
  saved.advance(30);
  CHECK(saved.to_metadata().at("fast.stream_next") == std::to_string(101 + 30 * 24));

  const auto second = order_of(5, 12);
  TrainingCursor other(12, second);
  other.take_place(saved.to_metadata());
  CHECK(other.epoch() == 1);
  CHECK(other.round() == 6);
  CHECK(second->round_begin(1, 6) == 101 + 30 * 24);
  CHECK(second->stream() == "one");

  const auto third = order_of(5, 12);
  TrainingCursor after_a_file(12, third);
  after_a_file.take_place(TrainingCursor(20).to_metadata());
  CHECK(!third->has_begun());
}
