#include "fast_serve/batcher.hpp"

#include <cstring>
#include <fast/core/error.hpp>
#include <mutex>

#include "fast_serve/request_parser.hpp"
#include "serve/models.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;
using namespace std::chrono_literals;
using serve::Batcher;
using serve::BatchOptions;

namespace {

const nn::ModelSpec tiny_model = nn::mlp({4, 8, 3});

/// The sizes of the passes.
struct Passes {
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  Batcher::OnPass on_pass() {
    return [this](const serve::ModelVersion&, std::size_t samples, double) {
      const std::lock_guard lock(mutex);
      sizes.push_back(samples);
    };
  }
};

std::vector<float> sample_of(std::uint64_t seed, std::size_t count = 1) {
  return random_values(4 * count, seed);
}

void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-5));
}

}  // namespace

TEST_CASE("requests that arrive together are computed in one pass, each with its own answer") {
  Passes passes;
  const auto version = version_of(tiny_model, 1);
  // Only a full batch ends the wait.
  Batcher batcher({6, 60s, 1, 100}, passes.on_pass());
  std::vector<std::future<std::vector<float>>> results;
  for (std::uint64_t i = 0; i < 6; ++i) results.push_back(batcher.submit(version, sample_of(i), 1));
  for (std::uint64_t i = 0; i < 6; ++i) {
    check_close(results[i].get(), logits_of(tiny_model, 1, sample_of(i), 1));
  }
  CHECK(passes.sizes == std::vector<std::size_t>{6});
}

TEST_CASE("a fault in one request is not that of those computed with it") {
  const nn::ModelSpec spec{"words", {2}, {nn::Embedding{9, 2}, nn::Flatten{}, nn::Dense{2}}};
  const auto version = version_of(spec, 1);
  Batcher batcher({3, 60s, 1, 100});
  std::vector<std::vector<float>> tokens{{0, 8}, {3, 99}, {8, 4}};
  std::vector<std::future<std::vector<float>>> results;
  for (const auto& each : tokens) results.push_back(batcher.submit(version, each, 1));
  for (const std::size_t i : {0, 2})
    check_close(results[i].get(), logits_of(spec, 1, tokens[i], 1));
  CHECK_THROWS_AS(results[1].get(), Error);
}

TEST_CASE("a request alone is computed after the delay") {
  Batcher batcher({64, 1ms, 1, 100});
  const auto version = version_of(tiny_model, 1);
  auto result = batcher.submit(version, sample_of(7), 1);
  REQUIRE(result.wait_for(30s) == std::future_status::ready);
  CHECK(result.get() == logits_of(tiny_model, 1, sample_of(7), 1));
}

TEST_CASE("the samples of two versions are never in one pass") {
  Passes passes;
  const auto one = version_of(tiny_model, 1), two = version_of(tiny_model, 2);
  std::vector<std::future<std::vector<float>>> results;
  {
    Batcher batcher({64, 60s, 1, 100}, passes.on_pass());
    for (std::uint64_t i = 0; i < 10; ++i) {
      results.push_back(batcher.submit(i % 2 == 0 ? one : two, sample_of(i), 1));
    }
  }  // the end computes what waits
  for (std::uint64_t i = 0; i < 10; ++i) {
    check_close(results[i].get(), logits_of(tiny_model, i % 2 == 0 ? 1 : 2, sample_of(i), 1));
  }
  CHECK(passes.sizes == std::vector<std::size_t>{5, 5});
}

TEST_CASE("a request is not divided among passes with others, and a long one has its own passes") {
  Passes passes;
  const auto version = version_of(tiny_model, 1);
  std::future<std::vector<float>> a, b, c;
  {
    Batcher batcher({8, 60s, 1, 100}, passes.on_pass());
    a = batcher.submit(version, sample_of(1, 5), 5);
    b = batcher.submit(version, sample_of(2, 20), 20);
    c = batcher.submit(version, sample_of(3, 2), 2);
  }
  check_close(a.get(), logits_of(tiny_model, 1, sample_of(1, 5), 5));
  check_close(b.get(), logits_of(tiny_model, 1, sample_of(2, 20), 20));
  check_close(c.get(), logits_of(tiny_model, 1, sample_of(3, 2), 2));
  CHECK(passes.sizes == std::vector<std::size_t>{5, 8, 8, 4, 2});
}

TEST_CASE("more than may wait is refused, and what waits is still computed") {
  const auto version = version_of(tiny_model, 1);
  std::future<std::vector<float>> first;
  {
    Batcher batcher({64, 60s, 1, 3});
    first = batcher.submit(version, sample_of(1, 2), 2);
    CHECK(batcher.waiting() == 2);
    CHECK_THROWS_AS(batcher.submit(version, sample_of(2, 2), 2), serve::Refusal);
  }
  CHECK(first.get().size() == 6);
}

TEST_CASE("a full batch is computed by the thread that brings it, when nothing else is computed") {
  const auto version = version_of(tiny_model, 1);
  std::vector<std::thread::id> by;
  std::mutex mutex;
  Batcher batcher({4, 60s, 1, 100}, [&](const serve::ModelVersion&, std::size_t, double) {
    const std::lock_guard lock(mutex);
    by.push_back(std::this_thread::get_id());
  });
  check_close(batcher.submit(version, sample_of(1, 4), 4).get(),
              logits_of(tiny_model, 1, sample_of(1, 4), 4));
  REQUIRE(by == std::vector{std::this_thread::get_id()});
  // One that waits is computed first, by the batcher's thread, with the full one behind it.
  auto waits = batcher.submit(version, sample_of(2), 1);
  auto full = batcher.submit(version, sample_of(3, 4), 4);
  check_close(waits.get(), logits_of(tiny_model, 1, sample_of(2), 1));
  check_close(full.get(), logits_of(tiny_model, 1, sample_of(3, 4), 4));
  CHECK(by.size() == 3);
  CHECK(by[1] != std::this_thread::get_id());
}

TEST_CASE("a thread that may not compute only brings its full batch") {
  const auto version = version_of(tiny_model, 1);
  std::promise<std::thread::id> by;
  Batcher batcher({4, 60s, 1, 100}, [&](const serve::ModelVersion&, std::size_t, double) {
    by.set_value(std::this_thread::get_id());
  });
  auto result = batcher.submit(version, sample_of(1, 4), 4, false);
  CHECK(by.get_future().get() != std::this_thread::get_id());
  check_close(result.get(), logits_of(tiny_model, 1, sample_of(1, 4), 4));
}

TEST_CASE("never more passes at a time than threads, whoever computes them") {
  const auto version = version_of(tiny_model, 1);
  std::atomic<int> now{0}, most{0};
  Batcher batcher({4, 0s, 2, 10000}, [&](const serve::ModelVersion&, std::size_t, double) {
    most = std::max(most.load(), ++now);
    std::this_thread::yield();
    --now;
  });
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (std::uint64_t t = 0; t < 5; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 40; ++i) {
        const std::size_t count = (t + i) % 2 == 0 ? 4 : 1;
        right += batcher.submit(version, sample_of(i, count), count).get().size() == 3 * count;
      }
    });
  }
  threads.clear();
  CHECK(right == 200);
  CHECK(most <= 2);
}

TEST_CASE("what is abandoned is refused at once, and so is what comes later") {
  const auto version = version_of(tiny_model, 1);
  Batcher batcher({64, 60s, 1, 100});
  auto first = batcher.submit(version, sample_of(1), 1);
  auto second = batcher.submit(version_of(tiny_model, 2), sample_of(2), 1);
  batcher.abandon();
  for (auto* result : {&first, &second}) {
    REQUIRE(result->wait_for(30s) == std::future_status::ready);
    CHECK_THROWS_AS(result->get(), serve::Refusal);
  }
  CHECK(batcher.waiting() == 0);
  CHECK_THROWS_AS(batcher.submit(version, sample_of(3), 1), serve::Refusal);
}

TEST_CASE("a long request is abandoned between its passes") {
  const auto version = version_of(tiny_model, 1);
  std::promise<void> computed, goes_on;
  std::atomic<int> passes{0};
  Batcher batcher({1, 0s, 1, 100}, [&](const serve::ModelVersion&, std::size_t, double) {
    if (++passes > 1) return;
    computed.set_value();
    goes_on.get_future().wait();
  });
  auto result = std::async(std::launch::async,
                           [&] { return batcher.submit(version, sample_of(1, 50), 50).get(); });
  computed.get_future().wait();
  batcher.abandon();
  goes_on.set_value();
  REQUIRE(result.wait_for(30s) == std::future_status::ready);
  CHECK_THROWS_AS(result.get(), serve::Refusal);
  CHECK(passes == 1);
}

TEST_CASE("several threads ask, and several compute") {
  const auto one = version_of(tiny_model, 1), two = version_of(tiny_model, 2);
  Batcher batcher({16, 200us, 3, 10000});
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (std::uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        const bool first = (i + t) % 2 == 0;
        const auto values = sample_of(100 * t + i);
        const auto found = batcher.submit(first ? one : two, values, 1).get();
        const auto expected = logits_of(tiny_model, first ? 1 : 2, values, 1);
        bool same = true;
        for (std::size_t c = 0; c < 3; ++c) same = same && std::abs(found[c] - expected[c]) < 1e-5;
        right += same ? 1 : 0;
      }
    });
  }
  threads.clear();
  CHECK(right == 300);
}
