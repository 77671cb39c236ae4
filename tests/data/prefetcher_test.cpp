#include <algorithm>
#include <atomic>
#include <fast/core/error.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/synthetic.hpp>
#include <mutex>
#include <stdexcept>

#include "support/catch.hpp"

using namespace fast;
using data::Loader;
using data::Prefetcher;
using data::PrefetchOptions;

namespace {

/// Augmented images of the second of two workers: six batches of nine an epoch.
Loader images(int threads = 1, std::size_t batch_size = 9) {
  Loader loader(data::synthetic_classification(120, {3, 6, 5}, 4, 1), {}, 2, 1, batch_size, 7);
  loader.augment({.padding = 2}, 5);
  loader.threads(threads);
  return loader;
}

void require_same(const Batch& found, const Batch& expected) {
  REQUIRE(found.sample_shape == expected.sample_shape);
  REQUIRE(std::vector(found.labels.begin(), found.labels.end()) ==
          std::vector(expected.labels.begin(), expected.labels.end()));
  REQUIRE(std::vector(found.inputs.begin(), found.inputs.end()) ==
          std::vector(expected.inputs.begin(), expected.inputs.end()));
}

/// Counts what is made, and fails at one batch.
class Watch final : public BatchMemory {
 public:
  std::shared_ptr<float> allocate(std::size_t values) override {
    auto own = std::make_shared<std::vector<float>>(values);
    return {own, own->data()};
  }
  void refill(const float* inputs) override {
    const std::lock_guard lock(mutex_);
    if (inputs == in_use) overwritten = true;
  }
  void filled(const Batch&) override {
    if (static_cast<int>(++made) == fails_at) throw std::runtime_error("the copy failed");
  }

  void use(const float* inputs) {
    const std::lock_guard lock(mutex_);
    in_use = inputs;
  }
  std::atomic<std::size_t> made{0};
  int fails_at = -1;
  const float* in_use = nullptr;
  std::atomic<bool> overwritten{false};

 private:
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("batches made ahead are the loader's, in its order, whoever makes them") {
  for (const std::size_t ahead : {0, 1, 3})
    for (const int threads : {1, 3}) {
      INFO(ahead << " ahead, " << threads << " threads");
      Loader plain = images();
      Prefetcher prefetcher(images(threads), {.ahead = ahead});
      REQUIRE(prefetcher.rounds() == plain.rounds());
      for (std::size_t epoch = 0; epoch < 3; ++epoch)
        for (std::size_t round = 0; round < plain.rounds(); ++round)
          require_same(prefetcher.batch(epoch, round), plain.batch(epoch, round));
    }
}

TEST_CASE("batches made ahead carry float targets") {
  std::vector<float> values(40), targets(80);
  for (std::size_t i = 0; i < 80; ++i) targets[i] = static_cast<float>(i);
  const data::Dataset set("pairs", {1}, values, data::Targets{targets, {2}});
  for (const std::size_t ahead : {0, 2}) {
    Loader plain(set, {}, 1, 0, 7, 3);
    Prefetcher prefetcher(Loader(set, {}, 1, 0, 7, 3), {.ahead = ahead});
    for (std::size_t round = 0; round < plain.rounds(); ++round) {
      const Batch &found = prefetcher.batch(2, round), &expected = plain.batch(2, round);
      REQUIRE(found.targets.size() == 14);
      REQUIRE(found.target_shape == expected.target_shape);
      REQUIRE(std::ranges::equal(found.targets, expected.targets));
    }
  }
}

TEST_CASE("asked for another batch than the next, a prefetcher goes on from there") {
  Loader plain = images();
  Prefetcher prefetcher(images());
  for (const auto& [epoch, round] :
       {std::pair<std::size_t, std::size_t>{4, 2}, {4, 3}, {0, 5}, {1, 0}, {1, 0}, {4, 2}, {4, 5}})
    require_same(prefetcher.batch(epoch, round), plain.batch(epoch, round));
}

TEST_CASE("samples of another worker are taken up from the next batch on") {
  Loader plain = images();
  Prefetcher prefetcher(images());
  std::vector<std::size_t> own;
  for (std::size_t i = 3; i < 70; ++i) own.push_back(119 - i);
  require_same(prefetcher.batch(0, 0), plain.batch(0, 0));
  plain.own(own);
  prefetcher.own(own);
  for (std::size_t round = 1; round < plain.rounds(); ++round)
    require_same(prefetcher.batch(0, round), plain.batch(0, round));
}

TEST_CASE("no more batches are made ahead than asked for, and none over the one in use") {
  const auto watch = std::make_shared<Watch>();
  Prefetcher prefetcher(images(), {.ahead = 2, .memory = watch});
  for (std::size_t taken = 1; taken <= 60; ++taken) {
    const Batch& batch = prefetcher.batch((taken - 1) / 6, (taken - 1) % 6);
    watch->use(batch.inputs.data());
    REQUIRE(watch->made >= taken);
    REQUIRE(watch->made <= taken + 2);
    watch->use(nullptr);
  }
  CHECK_FALSE(watch->overwritten);
}

TEST_CASE("a failure while a batch is made is thrown to whom asks for it, and can be got over") {
  const auto watch = std::make_shared<Watch>();
  watch->fails_at = 3;
  Prefetcher prefetcher(images(), {.ahead = 2, .memory = watch});
  CHECK_NOTHROW(prefetcher.batch(0, 0));
  CHECK_NOTHROW(prefetcher.batch(0, 1));
  CHECK_THROWS_WITH(prefetcher.batch(0, 2), "the copy failed");
  Loader plain = images();
  require_same(prefetcher.batch(0, 2), plain.batch(0, 2));
  CHECK_THROWS_WITH(prefetcher.batch(0, 6), ContainsSubstring("batch 6 of an epoch of 6"));
  require_same(prefetcher.batch(0, 5), plain.batch(0, 5));
}

TEST_CASE("memory of the caller's is used without a thread, too") {
  const auto watch = std::make_shared<Watch>();
  watch->fails_at = 2;
  Prefetcher prefetcher(images(), {.ahead = 0, .memory = watch});
  CHECK_NOTHROW(prefetcher.batch(0, 0));
  CHECK_THROWS_WITH(prefetcher.batch(0, 1), "the copy failed");
}

TEST_CASE("a prefetcher ends at any moment") {
  { const Prefetcher unused(images()); }
  for (std::size_t taken = 1; taken < 20; ++taken) {
    Prefetcher prefetcher(images(), {.ahead = 3});
    for (std::size_t i = 0; i < taken; ++i) prefetcher.batch(i / 6, i % 6);
    Prefetcher moved = std::move(prefetcher);
    moved.batch(0, 0);
  }
}

TEST_CASE("a loader on no threads is refused") {
  CHECK_THROWS_WITH(images(0), ContainsSubstring("0 threads"));
}
