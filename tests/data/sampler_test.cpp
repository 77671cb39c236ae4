#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/sampler.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using data::Sampler;

TEST_CASE("no sample is seen twice in an epoch and all workers make the same rounds") {
  const std::uint64_t seed = test_seed(11);
  CAPTURE(seed);
  Rng rng(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const int workers = 1 + static_cast<int>(rng.below(17));
    const std::size_t samples = static_cast<std::size_t>(workers) + rng.below(500);
    const std::size_t smallest = samples / static_cast<std::size_t>(workers);
    const std::size_t batch_size = 1 + rng.below(smallest);
    CAPTURE(workers, samples, batch_size);
    std::set<std::size_t> seen;
    for (int rank = 0; rank < workers; ++rank) {
      const Sampler sampler({samples, workers, rank, batch_size, seed});
      REQUIRE(sampler.rounds() == smallest / batch_size);
      const auto order = sampler.order(3);
      REQUIRE(order.size() == sampler.rounds() * batch_size);
      for (const std::size_t index : order) {
        REQUIRE(index < samples);
        REQUIRE(seen.insert(index).second);
      }
    }
    CHECK(samples - seen.size() < static_cast<std::size_t>(workers) * (batch_size + 1));
  }
}

TEST_CASE("an order depends on seed and epoch, and is the same each time") {
  const Sampler sampler({1000, 4, 1, 10, 5});
  CHECK(sampler.order(0) == sampler.order(0));
  CHECK(sampler.order(0) != sampler.order(1));
  CHECK(sampler.order(0) != Sampler({1000, 4, 1, 10, 6}).order(0));
}

TEST_CASE("the samples left over differ from epoch to epoch") {
  std::set<std::size_t> seen;
  const Sampler sampler({10, 1, 0, 9, 1});
  for (std::size_t epoch = 0; epoch < 40; ++epoch) {
    const auto order = sampler.order(epoch);
    const std::set<std::size_t> taken(order.begin(), order.end());
    for (std::size_t index = 0; index < 10; ++index) {
      if (!taken.contains(index)) seen.insert(index);
    }
  }
  CHECK(seen.size() >= 8);
}

TEST_CASE("every first sample is about equally likely") {
  std::vector<int> count(8);
  const Sampler sampler({8, 2, 1, 2, 99});
  for (std::size_t epoch = 0; epoch < 8000; ++epoch) ++count[sampler.order(epoch)[0]];
  for (const int c : count) CHECK(std::abs(c - 1000) < 150);  // 5 standard deviations
}

TEST_CASE("batch sizes that no part can fill are refused with the numbers") {
  CHECK_THROWS_WITH(Sampler({100, 4, 0, 0, 0}), ContainsSubstring("batch size 0"));
  CHECK_THROWS_WITH(Sampler({100, 4, 0, 26, 0}),
                    ContainsSubstring("batch size 26") &&
                        ContainsSubstring("100 samples over 4 workers: 25 each") &&
                        ContainsSubstring("at most 25"));
  CHECK(Sampler({100, 4, 0, 25, 0}).rounds() == 1);
  CHECK_THROWS_WITH(Sampler({3, 4, 0, 1, 0}), ContainsSubstring("3 samples for 4 workers"));
  CHECK_THROWS_WITH(Sampler({100, 4, 4, 1, 0}), ContainsSubstring("worker 4 of 4"));
  CHECK_THROWS_WITH(Sampler({100, 4, -1, 1, 0}), ContainsSubstring("worker -1 of 4"));
  CHECK_THROWS_WITH(Sampler({100, 0, 0, 1, 0}), ContainsSubstring("0 of 0"));
}

TEST_CASE("workers with batches of different sizes take the same samples of an epoch together") {
  const std::uint64_t seed = test_seed(13);
  CAPTURE(seed);
  Rng rng(seed);
  for (int trial = 0; trial < 100; ++trial) {
    const std::size_t workers = 1 + rng.below(6), batch_size = 1 + rng.below(9);
    const std::size_t samples = workers * batch_size + rng.below(300);
    const auto count = static_cast<int>(workers);
    CAPTURE(workers, batch_size, samples);
    std::set<std::size_t> even, seen;
    data::RoundShare share;
    std::size_t left = workers * batch_size, taken = 0;
    for (std::size_t rank = 0; rank < workers; ++rank) {
      const auto own = static_cast<int>(rank);
      const auto order = Sampler({samples, count, own, batch_size, seed}).order(2);
      even.insert(order.begin(), order.end());
      const std::size_t others = workers - rank - 1;
      share.batch_size = others == 0 ? left : 1 + rng.below(left - others);
      const Sampler sampler({samples, count, own, batch_size, seed, {}, share});
      REQUIRE(sampler.rounds() == samples / workers / batch_size);
      REQUIRE(sampler.batch_size() == share.batch_size);
      const auto shared = sampler.order(2);
      REQUIRE(shared.size() == sampler.rounds() * share.batch_size);
      seen.insert(shared.begin(), shared.end());
      taken += shared.size();
      share.before += share.batch_size;
      left -= share.batch_size;
    }
    REQUIRE(seen.size() == taken);
    REQUIRE(seen == even);
  }
}

TEST_CASE("a share that is not within a round is refused") {
  const auto refused = [](data::RoundShare share, std::vector<std::size_t> own = {}) {
    CHECK_THROWS_AS(Sampler({100, 4, 1, 10, 1, std::move(own), share}), Error);
  };
  refused({0, 0});
  refused({0, 41});
  refused({31, 10});
  refused({0, 10}, std::vector<std::size_t>(25));
  CHECK(Sampler({100, 4, 1, 10, 1, {}, data::RoundShare{30, 10}}).rounds() == 2);
}
