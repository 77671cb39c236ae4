// Runs on a stream of samples: which samples are trained on, whatever happens to run and stream.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::train_samples;
using testing::Trained;

namespace {

/// What the server has, for all workers.
struct FakeLog {
  data::Dataset samples = testing::made_up_data().train;
  std::vector<std::size_t> order;  ///< of message i + 1: its sample
  std::atomic<std::uint64_t> first{1}, end{1};
  std::set<std::uint64_t> removed;

  std::mutex mutex;
  std::vector<std::uint64_t> read;  ///< by any worker

  std::vector<std::uint64_t> sorted_reads() {
    std::vector<std::uint64_t> all = read;
    std::sort(all.begin(), all.end());
    return all;
  }
};

class FakeStream final : public data::SampleStream {
 public:
  explicit FakeStream(FakeLog& log) : log_(log) {}
  const std::string& name() const override { return name_; }
  Extent extent() override { return {log_.first, log_.end}; }
  Samples read(std::uint64_t begin, std::size_t count) override {
    while (log_.end < begin + count) {
      require(!interrupted_, ErrorKind::resource, "interrupted");
      std::this_thread::yield();
    }
    Samples found;
    std::vector<float> values;
    std::vector<std::int32_t> labels;
    const auto all = std::get<std::span<const float>>(log_.samples.values());
    const std::size_t size = log_.samples.sample_size();
    for (std::uint64_t number = begin; number < begin + count; ++number) {
      if (number < log_.first || log_.removed.contains(number)) continue;
      const std::size_t sample = log_.order[number - 1];
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(sample * size);
      values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(size));
      labels.push_back(log_.samples.labels()[sample]);
      found.numbers.push_back(number);
    }
    if (!labels.empty())
      found.samples = {name_, log_.samples.sample_shape(), values, labels, testing::classes};
    const std::lock_guard lock(log_.mutex);
    log_.read.insert(log_.read.end(), found.numbers.begin(), found.numbers.end());
    return found;
  }
  std::string first_damage() const override { return "a message is gone"; }
  void interrupt() override { interrupted_ = true; }

 private:
  FakeLog& log_;
  const std::string name_ = "nats://fake/samples";
  std::atomic<bool> interrupted_ = false;
};

/// Rounds take the samples as those of a run on the data set would.
void fill_as_trained(FakeLog& log, int workers, const train::TrainerOptions& options) {
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    std::vector<std::vector<std::size_t>> orders;
    std::size_t rounds = 0;
    for (int rank = 0; rank < workers; ++rank) {
      const data::Sampler sampler(
          {train_samples, workers, rank, options.batch_size, options.seed, {}, {}});
      rounds = sampler.rounds();
      orders.push_back(sampler.order(static_cast<std::size_t>(epoch)));
    }
    for (std::size_t i = 0; i < rounds; ++i) {
      for (const auto& order : orders) {
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i * options.batch_size);
        log.order.insert(log.order.end(), begin,
                         begin + static_cast<std::ptrdiff_t>(options.batch_size));
      }
    }
  }
  log.end = log.order.size() + 1;
}

void fill_in_order(FakeLog& log, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) log.order.push_back(i % train_samples);
  log.end = count + 1;
}

using ChangeOptions = std::function<void(train::TrainerOptions&)>;

std::vector<Trained> train_on_stream(FakeLog* log, int workers, const ChangeOptions& change = {}) {
  std::vector<Trained> all(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    train::TrainerOptions options = testing::trainer_options();
    if (log != nullptr) options.stream = std::make_shared<FakeStream>(*log);
    if (change) change(options);
    all[static_cast<std::size_t>(group.rank())] =
        testing::train_small(group, stencil::ring(), options);
  });
  return all;
}

std::vector<std::uint64_t> numbers_to(std::uint64_t last) {
  std::vector<std::uint64_t> all(last);
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  return all;
}

}  // namespace

TEST_CASE("a run on a stream ends with the bits of the run on the same samples of a data set") {
  for (const int workers : {1, 2, 3}) {
    for (const std::size_t ahead : {0, 2}) {
      INFO(workers << " workers, " << ahead << " batches ahead");
      const ChangeOptions change = [&](train::TrainerOptions& options) {
        options.prefetch.ahead = ahead;
      };
      FakeLog log;
      fill_as_trained(log, workers, testing::trainer_options());
      CHECK(train_on_stream(&log, workers, change).front().mean_model ==
            train_on_stream(nullptr, workers).front().mean_model);
      CHECK(log.sorted_reads() == numbers_to(3 * train_samples));
    }
  }
}

TEST_CASE("a stream that is slower than training is waited for, with the same result") {
  FakeLog log;
  fill_as_trained(log, 3, testing::trainer_options());
  log.end = 1;
  std::jthread publisher([&log] {
    for (std::uint64_t end = 1; end <= log.order.size() + 1; end += 37) {
      log.end = end;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    log.end = log.order.size() + 1;
  });
  const auto suspect_soon = [](train::TrainerOptions& options) {
    options.worker.suspect_after = Seconds(5);
    options.prefetch.ahead = 2;
  };
  const auto trained = train_on_stream(&log, 3, suspect_soon);
  CHECK(trained.front().summary.same_workers());
  CHECK(trained.front().mean_model == train_on_stream(nullptr, 3).front().mean_model);
}

TEST_CASE("a stopped run goes on with the sample after the last one, on any number of workers") {
  for (const int before : {2, 3}) {
    for (const int after : {1, 2, 3, 4}) {
      INFO(before << " workers, then " << after);
      const testing::TemporaryDirectory directory;
      FakeLog log;
      fill_in_order(log, 4 * train_samples);
      std::atomic<int> asked{0};
      train_on_stream(&log, before, [&](train::TrainerOptions& options) {
        options.checkpoints.directory = directory.path();
        options.checkpoints.stop_requested = [&asked] { return ++asked > 1; };
        options.pace.step_s = 0.01;
      });
      const std::vector<std::uint64_t> first = log.sorted_reads();
      REQUIRE(first.size() % static_cast<std::size_t>(16 * before) == 0);
      REQUIRE(first.size() < 3 * train_samples);
      REQUIRE(first == numbers_to(first.size()));
      const auto trained = train_on_stream(&log, after, [&](train::TrainerOptions& options) {
        options.checkpoints.resume = directory.path();
      });
      CHECK(log.read.size() > first.size());
      CHECK(log.sorted_reads() == numbers_to(log.read.size()));
      if (before != after) continue;
      CHECK(log.read.size() == 3 * train_samples);
      FakeLog whole;
      fill_in_order(whole, 4 * train_samples);
      CHECK(trained.front().mean_model == train_on_stream(&whole, after).front().mean_model);
    }
  }
}

TEST_CASE("samples that were removed are left out, and their numbers still count") {
  FakeLog log;
  fill_in_order(log, 3 * train_samples);
  std::vector<std::uint64_t> expected;
  for (const std::uint64_t number : numbers_to(3 * train_samples)) {
    const bool is_of_empty_batches = number > 480 && number <= 620;
    const bool is_gone = number % 7 == 0 || is_of_empty_batches;
    is_gone ? void(log.removed.insert(number)) : expected.push_back(number);
  }
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto trained = train_on_stream(&log, 3, [&](train::TrainerOptions& options) {
    options.worker.log = [&](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex);
      if (level == LogLevel::warning) lines.emplace_back(text);
    };
  });
  CHECK(log.sorted_reads() == expected);
  CHECK(lines.size() == 3);  // one of each worker
  for (const std::string& line : lines) CHECK_THAT(line, ContainsSubstring("a message is gone"));
  for (const double value : trained.front().mean_model) REQUIRE(std::isfinite(value));
}

TEST_CASE("an epoch whose samples were all removed has no loss, and each worker says so once") {
  FakeLog log;
  fill_in_order(log, 3 * train_samples);
  for (std::uint64_t number = train_samples + 1; number <= 3 * train_samples; ++number) {
    log.removed.insert(number);
  }
  const testing::TemporaryDirectory directory;
  std::mutex mutex;
  int told = 0;
  train_on_stream(&log, 3, [&](train::TrainerOptions& options) {
    options.out = directory.path();
    options.worker.log = [&](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex);
      if (text.find("samples of epoch 2 could be read") != text.npos) ++told;
    };
  });
  CHECK(told == 3);
  std::ifstream file(directory / "metrics/0.jsonl");
  std::vector<bool> has_loss;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"kind\":\"epoch\"") == line.npos) continue;
    has_loss.push_back(line.find("\"loss\":null") == line.npos);
    CHECK(line.find("\"test_loss\":null") == line.npos);
  }
  CHECK(has_loss == std::vector{true, false, false});
}

TEST_CASE("a run begins with the first sample that the stream has, and resumes with it") {
  FakeLog log;
  fill_in_order(log, 6 * train_samples);
  log.first = 101;
  const testing::TemporaryDirectory directory;
  train_on_stream(&log, 2, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 60;
    options.epochs = 2;
  });
  CHECK(log.sorted_reads().front() == 101);
  CHECK(log.sorted_reads().back() == 100 + 2 * train_samples);
  log.read.clear();
  log.first = 2500;  // messages of the third epoch were dropped
  train_on_stream(&log, 2, [&](train::TrainerOptions& options) {
    options.checkpoints.resume = directory.path();
  });
  CHECK(log.sorted_reads().front() == 2500);
  CHECK(log.sorted_reads().back() == 2499 + train_samples);

  FakeLog other;
  fill_in_order(other, 50);
  CHECK_THROWS_WITH(
      train_on_stream(
          &other, 2,
          [&](train::TrainerOptions& options) { options.checkpoints.resume = directory.path(); }),
      ContainsSubstring("goes on with message 2021") && ContainsSubstring("ends with message 50"));
}

TEST_CASE("a run that waits for samples stops when it is asked to, and has saved its place") {
  for (const std::int64_t staleness : {0, 2}) {
    INFO("staleness " << staleness);
    const testing::TemporaryDirectory directory;
    FakeLog log;
    fill_in_order(log, 3 * train_samples);
    log.end = 500;
    std::atomic<int> asked{0};
    train_on_stream(&log, 3, [&](train::TrainerOptions& options) {
      options.checkpoints.directory = directory.path();
      options.checkpoints.stop_requested = [&asked] { return ++asked > 20; };
      options.worker.staleness = staleness;
      options.prefetch.ahead = 1;
    });
    log.read.clear();
    log.end = 3 * train_samples + 1;
    train_on_stream(&log, 3, [&](train::TrainerOptions& options) {
      options.checkpoints.resume = directory.path();
      options.worker.staleness = staleness;
    });
    CHECK(log.sorted_reads().front() == 481);  // ten rounds of 48
    CHECK(log.sorted_reads().back() == 3 * train_samples);
    CHECK(log.read.size() == 3 * train_samples - 480);
  }
}

TEST_CASE("a run that waits for its first samples stops when it is asked to, and can go on") {
  for (const std::int64_t staleness : {0, 2}) {
    INFO("staleness " << staleness);
    const testing::TemporaryDirectory directory;
    FakeLog log;
    std::atomic<int> asked{0};
    train_on_stream(&log, 3, [&](train::TrainerOptions& options) {
      options.checkpoints.directory = directory.path();
      options.checkpoints.stop_requested = [&asked] { return ++asked > 5; };
      options.worker.staleness = staleness;
    });
    CHECK(log.read.empty());
    fill_as_trained(log, 3, testing::trainer_options());
    const auto trained = train_on_stream(&log, 3, [&](train::TrainerOptions& options) {
      options.checkpoints.resume = directory.path();
      options.worker.staleness = staleness;
    });
    CHECK(log.sorted_reads() == numbers_to(3 * train_samples));
    if (staleness == 0)
      CHECK(trained.front().mean_model == train_on_stream(nullptr, 3).front().mean_model);
  }
}

TEST_CASE("what a stream cannot be trained with is refused by name") {
  FakeLog log;
  fill_in_order(log, 100);
  const auto refuses = [&](const ChangeOptions& change, const char* text) {
    CHECK_THROWS_WITH(train_on_stream(&log, 2, change), ContainsSubstring(text));
  };
  refuses([](auto& options) { options.shards.dirichlet_alpha = 1; }, "even sharding");
  refuses([](auto& options) { options.window = 10; }, "publish them shuffled");
  refuses([](auto& options) { options.validation = 0.1; }, "validation");
  refuses([](auto& options) { options.all_reduce = true; }, "all-reduce");
  refuses([](auto& options) { options.arena = train::Arena::rotating; }, "fixed arena");
  refuses([](auto& options) { options.batch_size = 481; }, "0 rounds");
}
