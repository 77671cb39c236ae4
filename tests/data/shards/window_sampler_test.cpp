#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/sampler.hpp>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "support/catch.hpp"

using namespace fast;
using data::Windows;
using data::WindowSampler;

namespace {

/// Shards of different sizes, one of them empty: 103 samples.
Windows uneven(int workers, int rank, std::size_t window) {
  return {{30, 1, 0, 40, 32}, workers, rank, 4, 9, window};
}

std::vector<std::size_t> epoch_of(WindowSampler& sampler, std::size_t epoch) {
  std::vector<std::size_t> all;
  for (std::size_t round = 0; round < sampler.rounds(); ++round) {
    const auto batch = sampler.batch(epoch, round);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

std::size_t shard_of(const Windows& windows, std::size_t sample) {
  std::size_t shard = 0;
  for (std::size_t end = windows.shards[0]; sample >= end; end += windows.shards[++shard]) {
  }
  return shard;
}

}  // namespace

TEST_CASE("no sample of shards is seen twice in an epoch, and few are not seen") {
  for (const int workers : {1, 2, 3, 5}) {
    for (const std::size_t window : {1, 7, 16, 1000}) {
      std::set<std::size_t> seen;
      std::size_t count = 0;
      for (int rank = 0; rank < workers; ++rank) {
        WindowSampler sampler(uneven(workers, rank, window));
        REQUIRE(sampler.rounds() == 103 / static_cast<std::size_t>(workers) / 4);
        for (const std::size_t sample : epoch_of(sampler, 3)) {
          seen.insert(sample);
          ++count;
        }
      }
      CHECK(seen.size() == count);
      CHECK(*seen.rbegin() < 103);
      CHECK(103 - count < static_cast<std::size_t>(workers) * 4);
    }
  }
}

TEST_CASE("a worker reads the shards that it owns, and all workers own all shards") {
  for (const std::size_t epoch : {0, 1, 2}) {
    std::set<std::size_t> owned;
    for (int rank = 0; rank < 3; ++rank) {
      const Windows windows = uneven(3, rank, 10);
      WindowSampler sampler(windows);
      const auto shards = sampler.shards_of(epoch);
      owned.insert(shards.begin(), shards.end());
      for (const std::size_t sample : epoch_of(sampler, epoch))
        CHECK(std::count(shards.begin(), shards.end(), shard_of(windows, sample)) == 1);
    }
    CHECK(owned == std::set<std::size_t>{0, 1, 3, 4});  // the empty one is nobody's
  }
}

TEST_CASE("samples stay within their window, and windows in their order") {
  WindowSampler sampler({{60, 60}, 1, 0, 10, 5, 20});
  const std::vector<std::size_t> order = epoch_of(sampler, 1);
  const auto shards = sampler.shards_of(1);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t in_order = order[at] % 60 + (order[at] / 60 == shards[0] ? 0 : 60);
    CHECK(in_order / 20 == at / 20);
  }
  CHECK_FALSE(std::is_sorted(order.begin(), order.begin() + 20));
}

TEST_CASE("a window of any size is a worker's block at most") {
  for (int rank = 0; rank < 3; ++rank) {
    WindowSampler block(uneven(3, rank, 103));  // all samples
    const std::vector<std::size_t> expected = epoch_of(block, 2);
    for (const std::size_t less : {0, 20, 50}) {
      WindowSampler sampler(uneven(3, rank, std::numeric_limits<std::size_t>::max() - less));
      CHECK(epoch_of(sampler, 2) == expected);
    }
  }
}

TEST_CASE("a batch is a function of epoch and round alone") {
  WindowSampler in_turn(uneven(2, 1, 9)), at_random(uneven(2, 1, 9));
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> batches;
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    for (std::size_t round = 0; round < in_turn.rounds(); ++round)
      batches[{epoch, round}] = in_turn.batch(epoch, round);
  }
  for (const std::size_t epoch : {2, 0, 1}) {
    for (std::size_t round = in_turn.rounds(); round-- > 0;)
      CHECK(at_random.batch(epoch, round) == batches[{epoch, round}]);
  }
  CHECK(batches[{0, 0}] != batches[{1, 0}]);
  Windows other = uneven(2, 1, 9);
  other.seed = 10;
  CHECK(WindowSampler(other).batch(0, 0) != batches[{0, 0}]);
}

TEST_CASE("every sample comes first in its window as often as others") {
  // 400 epochs of a window of 4: each sample 100 times, with a standard deviation below 9.
  std::vector<int> first(4);
  WindowSampler sampler({{4}, 1, 0, 4, 77, 4});
  for (std::size_t epoch = 0; epoch < 400; ++epoch) ++first[sampler.batch(epoch, 0)[0]];
  for (const int count : first) CHECK(std::abs(count - 100) < 45);
}

TEST_CASE("windows that cannot be dealt are refused") {
  CHECK_THROWS_WITH(WindowSampler({{10}, 2, 2, 1, 0, 5}), ContainsSubstring("worker 2 of 2"));
  CHECK_THROWS_WITH(WindowSampler({{10}, 2, 0, 0, 0, 5}), ContainsSubstring("batch size 0"));
  CHECK_THROWS_WITH(WindowSampler({{10}, 2, 0, 1, 0, 0}), ContainsSubstring("window of 0"));
  CHECK_THROWS_WITH(WindowSampler({{10}, 2, 0, 6, 0, 5}), ContainsSubstring("5 each"));
}

TEST_CASE("with batches of different sizes no sample of shards is seen twice in an epoch") {
  for (const std::size_t window : {1, 7, 1000}) {
    std::set<std::size_t> seen;
    std::size_t count = 0, before = 0;
    for (const std::size_t batch_size : {7, 1, 4}) {
      Windows windows = uneven(3, before == 0 ? 0 : before == 7 ? 1 : 2, window);
      windows.share = data::RoundShare{before, batch_size};
      before += batch_size;
      WindowSampler sampler(windows);
      REQUIRE(sampler.rounds() == 103 / 3 / 4);
      REQUIRE(sampler.batch_size() == batch_size);
      const auto own = epoch_of(sampler, 3);
      REQUIRE(own.size() == sampler.rounds() * batch_size);
      std::set<std::size_t> shards;
      for (const std::size_t sample : own) shards.insert(shard_of(windows, sample));
      const auto read = sampler.shards_of(3);
      for (const std::size_t shard : shards)
        CHECK(std::find(read.begin(), read.end(), shard) != read.end());
      seen.insert(own.begin(), own.end());
      count += own.size();
    }
    CHECK(seen.size() == count);
  }
}

TEST_CASE("even shares are those of workers without a share") {
  for (int rank = 0; rank < 3; ++rank) {
    Windows windows = uneven(3, rank, 16);
    WindowSampler without(windows);
    windows.share = data::RoundShare{static_cast<std::size_t>(rank) * 4, 4};
    WindowSampler with(windows);
    CHECK(epoch_of(with, 2) == epoch_of(without, 2));
  }
}
