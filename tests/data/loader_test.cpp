#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/sampler.hpp>
#include <numeric>
#include <set>

#include "support/catch.hpp"

using namespace fast;
using data::Dataset;
using data::Loader;

namespace {

/// Sample i is {i, 2 i} with label i mod 3.
Dataset numbered(std::size_t samples) {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < samples; ++i) {
    values.push_back(static_cast<float>(i));
    values.push_back(static_cast<float>(2 * i));
    labels.push_back(static_cast<std::int32_t>(i % 3));
  }
  return {"numbered", {1, 1, 2}, std::move(values), std::move(labels), 3};
}

/// The same samples with the targets {i, -i} or, as labels, {i mod 3, 1}.
Dataset numbered_pairs(std::size_t samples, bool floats) {
  std::vector<float> values, targets;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < samples; ++i) {
    values.push_back(static_cast<float>(i));
    targets.insert(targets.end(), {static_cast<float>(i), -static_cast<float>(i)});
    labels.insert(labels.end(), {static_cast<std::int32_t>(i % 3), 1});
  }
  if (floats) return {"pairs", {1}, std::move(values), data::Targets{std::move(targets), {2}}};
  return {"pairs", {1}, std::move(values), data::Targets{std::move(labels), {2}, 3}};
}

}  // namespace

TEST_CASE("targets and labels of several values go with their samples") {
  for (const bool floats : {true, false}) {
    Loader loader(numbered_pairs(50, floats), {}, 2, 1, 4, 9);
    for (const Batch& batch : loader.epoch(1)) {
      REQUIRE(batch.count() == 4);
      REQUIRE(batch.target_shape == std::vector<std::int64_t>{2});
      REQUIRE(batch.targets.size() == (floats ? 8 : 0));
      REQUIRE(batch.labels.size() == (floats ? 0 : 8));
      for (std::size_t i = 0; i < 4; ++i) {
        const float sample = batch.inputs[i];
        if (floats) {
          CHECK(batch.targets[2 * i] == sample);
          CHECK(batch.targets[2 * i + 1] == -sample);
        } else {
          CHECK(batch.labels[2 * i] == static_cast<int>(sample) % 3);
          CHECK(batch.labels[2 * i + 1] == 1);
        }
      }
    }
    Loader all(numbered_pairs(5, floats), {}, 4);
    CHECK(all.batch(0, 1).count() == 1);
  }
}

TEST_CASE("a loader needs room for all targets of a batch") {
  Loader loader(numbered_pairs(8, true), {}, 4);
  std::vector<float> inputs(4), targets(7);
  CHECK_THROWS_WITH(loader.fill(0, 0, inputs, {}, targets),
                    ContainsSubstring("room for 7") && ContainsSubstring("4 samples have 8"));
}

TEST_CASE("a training loader follows the sampler's order") {
  Loader loader(numbered(103), {}, 3, 2, 8, 42);
  const data::Sampler sampler({103, 3, 2, 8, 42});
  REQUIRE(loader.rounds() == sampler.rounds());
  for (const std::size_t epoch : {0, 1, 0}) {
    const auto order = sampler.order(epoch);
    std::size_t at = 0;
    for (const Batch& batch : loader.epoch(epoch)) {
      REQUIRE(batch.count() == 8);
      REQUIRE(batch.sample_shape == std::vector<std::int64_t>{1, 1, 2});
      for (std::size_t i = 0; i < batch.count(); ++i, ++at) {
        CHECK(batch.inputs[2 * i] == static_cast<float>(order[at]));
        CHECK(batch.inputs[2 * i + 1] == static_cast<float>(2 * order[at]));
        CHECK(batch.labels[i] == static_cast<std::int32_t>(order[at] % 3));
      }
    }
    CHECK(at == order.size());
  }
}

TEST_CASE("a batch asked for out of turn is the one of the epoch's pass") {
  Loader in_turn(numbered(60), {}, 2, 0, 5, 1), resumed(numbered(60), {}, 2, 0, 5, 1);
  std::size_t round = 0;
  for (const Batch& batch : in_turn.epoch(4)) {
    const Batch& other = resumed.batch(4, round++);
    CHECK(std::equal(batch.inputs.begin(), batch.inputs.end(), other.inputs.begin()));
  }
  CHECK(round == in_turn.rounds());
  CHECK_THROWS_WITH(in_turn.batch(0, round), ContainsSubstring("batch 6 of an epoch of 6"));
}

TEST_CASE("an evaluation loader goes through all samples in order, the last batch short") {
  Loader loader(numbered(10), {{1}, {2}}, 4);
  CHECK(loader.rounds() == 3);
  std::vector<std::size_t> counts;
  float next = 0;
  for (const Batch& batch : loader.epoch(0)) {
    counts.push_back(batch.count());
    REQUIRE(batch.inputs.size() == 2 * batch.count());
    for (std::size_t i = 0; i < batch.count(); ++i, ++next) {
      CHECK(batch.inputs[2 * i] == Approx((next - 1) / 2));
    }
  }
  CHECK(counts == std::vector<std::size_t>{4, 4, 2});
  CHECK(Loader(numbered(8), {}, 4).rounds() == 2);
  CHECK(Loader(numbered(3), {}, 100).batch(7, 0).count() == 3);
}

TEST_CASE("a loader that is given other samples trains on these, in as many rounds") {
  Loader loader(numbered(40), {}, 2, 0, 5, 1);
  loader.batch(0, 0);
  std::vector<std::size_t> high(25);
  std::iota(high.begin(), high.end(), std::size_t{15});
  loader.own(high);
  CHECK(loader.rounds() == 4);
  std::set<float> seen;
  for (std::size_t epoch = 0; epoch < 20; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      for (std::size_t i = 0; i < batch.count(); ++i) seen.insert(batch.inputs[2 * i]);
    }
  }
  CHECK(seen.size() == 25);
  CHECK(*seen.begin() == 15);
  CHECK_THROWS_WITH(loader.own({1, 2}), ContainsSubstring("2 samples of its own, 20 are needed"));
  CHECK_THROWS_WITH(Loader(numbered(8), {}, 4).own(high), ContainsSubstring("for training"));
}

TEST_CASE("buffers are reused from batch to batch") {
  Loader loader(numbered(100), {}, 1, 0, 10, 3);
  const float* first = loader.batch(0, 0).inputs.data();
  CHECK(loader.batch(0, 9).inputs.data() == first);
  CHECK(loader.batch(1, 0).inputs.data() == first);
}

TEST_CASE("loaders refuse what samplers refuse") {
  CHECK_THROWS_WITH(Loader(numbered(10), {}, 0), ContainsSubstring("batch size 0"));
  CHECK_THROWS_WITH(Loader(numbered(10), {}, 2, 0, 0, 0), ContainsSubstring("batch size 0"));
  CHECK_THROWS_WITH(Loader(numbered(10), {}, 2, 0, 6, 0), ContainsSubstring("at most 5"));
}

TEST_CASE("mixed samples are two of a batch in shares of its own, with both labels") {
  for (const std::size_t batch_size : {7, 8}) {
    Loader plain(numbered(60), {}, 2, 1, batch_size, 9), mixed = plain, ahead = plain;
    mixed.mix(0.4, 3);
    ahead.mix(0.4, 3);
    data::Prefetcher prefetcher(std::move(ahead), {.ahead = 2});
    std::set<double> shares;
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      for (std::size_t round = 0; round < plain.rounds(); ++round) {
        const Batch &from = plain.batch(epoch, round), &found = mixed.batch(epoch, round),
                    &same = prefetcher.batch(epoch, round);
        REQUIRE(found.share >= 0.5);
        REQUIRE(found.share <= 1);
        shares.insert(found.share);
        CHECK(same.share == found.share);
        CHECK(std::ranges::equal(found.labels, from.labels));
        REQUIRE(found.mixed_labels.size() == batch_size);
        CHECK(std::ranges::equal(same.mixed_labels, found.mixed_labels));
        for (std::size_t i = 0; i < batch_size; ++i) {
          const std::size_t other = batch_size - 1 - i;
          CHECK(found.mixed_labels[i] == from.labels[other]);
          for (std::size_t k = 2 * i, o = 2 * other; k < 2 * i + 2; ++k, ++o) {
            CHECK(found.inputs[k] ==
                  Approx(found.share * from.inputs[k] + (1 - found.share) * from.inputs[o]));
            CHECK(same.inputs[k] == found.inputs[k]);
          }
        }
      }
    }
    CHECK(shares.size() == 2 * plain.rounds());
  }
}

// Of Beta(a, a): E[s (1 - s)] = a / (2 (2 a + 1)), the same for 1 - s.
TEST_CASE("shares of mixed samples have the mean of their distribution") {
  Loader loader(numbered(20), {}, 1, 0, 1, 1);
  for (const double alpha : {0.1, 0.2, 1.0, 3.0, 1e-4}) {
    INFO("alpha " << alpha);
    loader.mix(alpha, 5);
    double sum = 0, squares = 0;
    constexpr double draws = 20'000;
    for (std::size_t epoch = 0; epoch < draws / 20; ++epoch) {
      for (const Batch& batch : loader.epoch(epoch)) {
        const double product = batch.share * (1 - batch.share);
        sum += product;
        squares += product * product;
      }
    }
    const double mean = sum / draws;
    const double deviation = std::sqrt((squares / draws - mean * mean) / draws);
    CHECK(std::abs(mean - alpha / (2 * (2 * alpha + 1))) < 4 * deviation + 1e-4);
  }
  CHECK_THROWS_WITH(loader.mix(0, 1), ContainsSubstring("a positive number"));
  Loader steps(numbered_pairs(50, false), {}, 2, 1, 4, 9);
  CHECK_THROWS_WITH(steps.mix(1, 1), ContainsSubstring("no single class label"));
}
