#include <fast/core/error.hpp>
#include <fast/data/sample_stream.hpp>
#include <fast/data/synthetic.hpp>

#include <map>

#include "support/catch.hpp"

using namespace fast;
using data::StreamOrder;

namespace {

/// How often each sample is taken by the rounds from (epoch, round) on, so many of them.
void take(std::map<std::uint64_t, int>& taken, int workers, std::size_t batch_size,
          std::size_t rounds, std::uint64_t begin, std::size_t epoch, std::size_t round,
          std::size_t count) {
  for (int rank = 0; rank < workers; ++rank) {
    StreamOrder order(workers, rank, batch_size, rounds);
    order.begin(begin, epoch, round);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = round + i;
      const std::uint64_t first = order.batch_begin(epoch + at / rounds, at % rounds);
      for (std::uint64_t s = first; s < first + batch_size; ++s) ++taken[s];
    }
  }
}

}  // namespace

TEST_CASE("the workers of a stream take each sample once, also when their number changes") {
  for (const int before : {1, 2, 3, 5}) {
    for (const int after : {1, 2, 4, 7}) {
      INFO(before << " workers, then " << after);
      std::map<std::uint64_t, int> taken;
      take(taken, before, 8, 10, 1001, 0, 0, 23);
      StreamOrder order(before, 0, 8, 10);
      order.begin(1001, 0, 0);
      const std::uint64_t next = order.round_begin(2, 3);
      CHECK(next == 1001 + 23 * 8 * static_cast<std::uint64_t>(before));
      CHECK(order.round_end(2, 2) == next);
      take(taken, after, 8, 7, next, 2, 5, 12);
      const auto all = static_cast<std::size_t>(23 * 8 * before + 12 * 8 * after);
      REQUIRE(taken.size() == all);
      CHECK(taken.begin()->first == 1001);
      CHECK(taken.rbegin()->first == 1000 + all);
      for (const auto& [sample, times] : taken) REQUIRE(times == 1);
    }
  }
}

TEST_CASE(
    "the origin of a stream's order is the same on all workers, and may be before its begin") {
  StreamOrder first(3, 0, 4, 5), other(3, 2, 4, 5);
  first.begin(7, 3, 1);
  CHECK(first.origin() == 7 - 16 * 12);
  other.begin_at_origin(first.origin());
  CHECK(other.round_begin(3, 1) == 7);
  CHECK(other.batch_begin(3, 2) == 7 + 12 + 8);
}

TEST_CASE("an order without a begin, and one without rounds, are refused") {
  CHECK_THROWS_WITH(StreamOrder(2, 0, 4, 5).round_begin(0, 0), ContainsSubstring("begin()"));
  CHECK_THROWS_WITH(StreamOrder(2, 0, 4, 0), ContainsSubstring("0 rounds"));
  CHECK_THROWS_WITH(StreamOrder(2, 2, 4, 5), ContainsSubstring("worker 2 of 2"));
}

TEST_CASE("the form of a stream has shape, classes and size, and no samples") {
  const data::Dataset like = data::synthetic_classification(5, {3, 2}, 4, 1);
  const data::Dataset form = data::form_of_stream(like, "s", 1000);
  CHECK(form.size() == 1000);
  CHECK(form.sample_shape() == like.sample_shape());
  CHECK(form.classes() == 4);
  CHECK(form.is_bytes() == like.is_bytes());
  std::vector<std::byte> room(6 * sizeof(float));
  CHECK_THROWS_WITH(form.copy(0, room), ContainsSubstring("batches"));
}
