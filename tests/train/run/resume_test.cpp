// Runs that stop, by choice or not, and go on from what they saved.
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/checkpoint/manifest.hpp"
#include "train/run/training_cursor.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::Trained;

namespace {

struct Setting {
  std::string algorithm = "awc";
  std::string codec = "identity";
  double ema = 0;
  std::int64_t staleness = 0;
  train::Arena arena = train::Arena::fixed;
};

train::TrainerOptions options_for(const Setting& setting) {
  train::TrainerOptions options = testing::trainer_options();
  options.worker.algorithm = algorithm::by_name(setting.algorithm);
  options.worker.codec = codec::by_name(setting.codec);
  options.worker.staleness = setting.staleness;
  options.ema_decay = setting.ema;
  options.arena = setting.arena;
  return options;
}

/// What each of `workers` threads ends with. `change` sees every worker's options.
template <class Change>
std::vector<Trained> train_with(int workers, const Setting& setting, const Change& change) {
  std::vector<Trained> all(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    train::TrainerOptions options = options_for(setting);
    change(options);
    all[static_cast<std::size_t>(group.rank())] =
        testing::train_small(group, stencil::ring(), options);
  });
  return all;
}

/// The first worker to be asked so often says that it shall stop.
auto stop_after(const std::filesystem::path& directory, std::atomic<int>& rounds, int most) {
  return [&rounds, directory, most](train::TrainerOptions& options) {
    options.checkpoints.directory = directory;
    options.checkpoints.stop_requested = [&rounds, most] { return ++rounds >= most; };
  };
}

auto resume_from(const std::filesystem::path& directory) {
  return [directory](train::TrainerOptions& options) { options.checkpoints.resume = directory; };
}

/// Plain averaging that notes the largest rate with which each worker's first combination is made.
struct RateProbe {
  struct Seen {
    std::mutex mutex;
    std::vector<double> rates;
  };
  std::shared_ptr<Seen> seen;
  bool has_noted = false;

  static algorithm::RuleTraits traits() {
    return {.name = "probe", .summary = "", .source = "", .step = {.needs_learning_rate = true}};
  }
  template <class T>
  void publish(const algorithm::Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  void begin_combine(const algorithm::RoundInfo& info, std::span<const double>,
                     std::span<const double>) {
    if (std::exchange(has_noted, true)) return;
    const std::lock_guard lock(seen->mutex);
    seen->rates.push_back(info.largest_rate);
  }
  template <class T>
  void combine(const algorithm::Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

}  // namespace

TEST_CASE("a run that is stopped and resumed ends with the same bits") {
  const std::vector<Setting> settings = {{},
                                         {"atc", "identity"},
                                         {"awc", "int8"},
                                         {"gradient_tracking"},
                                         {"push_sum"},
                                         {"awc", "identity", 0.9},
                                         {"awc", "identity", 0, 0, train::Arena::rotating}};
  for (const Setting& setting : settings) {
    INFO(setting.algorithm << " " << setting.codec << " " << setting.ema);
    const testing::TemporaryDirectory directory;
    const auto whole = train_with(3, setting, [](auto&) {});
    // Every 25 rounds; the run is ended after 37 of its 60, losing 12.
    const auto cut = [&](train::TrainerOptions& options) {
      options.checkpoints.directory = directory.path();
      options.checkpoints.every_rounds = 25;
      options.worker.on_round = [](std::int64_t round) {
        if (round == 37) throw std::runtime_error("the power is cut");
      };
    };
    CHECK_THROWS(train_with(3, setting, cut));
    CHECK(train::find_checkpoint(directory.path()).round == 25);
    const auto resumed = train_with(3, setting, resume_from(directory.path()));
    for (std::size_t w = 0; w < 3; ++w) CHECK((resumed[w].mean_model == whole[w].mean_model));
    CHECK(resumed[0].summary.rounds == whole[0].summary.rounds);
    CHECK(resumed[0].summary.bytes_sent_per_worker_per_round ==
          Approx(whole[0].summary.bytes_sent_per_worker_per_round));
  }
}

TEST_CASE("a worker that is asked to stop takes all along, in one and the same round") {
  const testing::TemporaryDirectory directory;
  const auto whole = train_with(4, {}, [](auto& options) { options.epochs = 60; });
  std::atomic<int> rounds{0};
  const auto stopped = train_with(4, {}, [&](train::TrainerOptions& options) {
    options.epochs = 60;
    options.pace.step_s = 0.005;
    stop_after(directory.path(), rounds, 20)(options);
  });
  for (const Trained& each : stopped) CHECK(each.summary.stopped);
  const train::Manifest manifest = train::find_checkpoint(directory.path());
  CHECK(manifest.shards.size() == 4);
  CHECK(manifest.round == static_cast<std::int64_t>(stopped[0].summary.rounds));
  const auto resumed = train_with(4, {}, [&](train::TrainerOptions& options) {
    options.epochs = 60;
    resume_from(directory.path())(options);
  });
  CHECK_FALSE(resumed[0].summary.stopped);
  for (std::size_t w = 0; w < 4; ++w) CHECK((resumed[w].mean_model == whole[w].mean_model));
}

TEST_CASE("a run on mixed samples goes on bit for bit") {
  const testing::TemporaryDirectory directory;
  const auto mixed = [](train::TrainerOptions& options) { options.mixup = 0.3; };
  const auto whole = train_with(2, {}, [&](train::TrainerOptions& options) {
    mixed(options);
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 40;
  });
  const auto resumed = train_with(2, {}, [&](train::TrainerOptions& options) {
    mixed(options);
    resume_from(directory.path())(options);
  });
  CHECK(train::find_checkpoint(directory.path()).round == 80);
  for (std::size_t w = 0; w < 2; ++w) CHECK((resumed[w].mean_model == whole[w].mean_model));
}

TEST_CASE("a run goes on with more workers, or fewer") {
  for (const int before : {1, 2, 3, 4, 8}) {
    const testing::TemporaryDirectory directory;
    const auto save = [&](train::TrainerOptions& options) {
      options.checkpoints.directory = directory.path();
      options.checkpoints.every_rounds = 5;
      options.epochs = 2;
    };
    train_with(before, {}, save);
    for (const int after : {1, 2, 3, 4, 8}) {
      INFO(before << " to " << after);
      const auto resumed = train_with(after, {}, resume_from(directory.path()));
      CHECK(resumed[0].summary.workers == after);
      CHECK(resumed[0].summary.test_accuracy_mean_model > 0.93);
    }
  }
}

TEST_CASE("a run goes on within the epoch, with any number of workers, from its last rounds, too") {
  const std::uint64_t seed = test_seed(41);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int k = 0; k < 20000; ++k) {
    const auto of = static_cast<std::int64_t>(1 + rng.below(300));
    const auto round = k % 2 == 0 ? of - 1 : static_cast<std::int64_t>(rng.below(of));
    const std::size_t rounds = k % 5 == 0 ? static_cast<std::size_t>(of) : 1 + rng.below(300);
    INFO("round " << round << " of " << of << " in an epoch of " << rounds);
    const std::size_t place = train::place_in_epoch(round, of, rounds);
    REQUIRE(place < rounds);
    // Samples left out or seen twice: those of less than a round.
    const double off = static_cast<double>(place) / static_cast<double>(rounds) -
                       static_cast<double>(round) / static_cast<double>(of);
    REQUIRE(std::abs(off) * static_cast<double>(rounds) < 1);
    if (rounds == static_cast<std::size_t>(of)) REQUIRE(place == static_cast<std::size_t>(round));
  }
  for (int k = 0; k < 6; ++k) {
    const int before = static_cast<int>(1 + rng.below(5)),
              after = static_cast<int>(1 + rng.below(8));
    const int rounds = testing::train_samples / 16 / static_cast<std::size_t>(before);
    INFO(before << " to " << after);
    const testing::TemporaryDirectory directory;
    train_with(before, {}, [&](train::TrainerOptions& options) {
      options.checkpoints.directory = directory.path();
      options.checkpoints.every_rounds = rounds - 1;
      options.epochs = 1;
    });
    CHECK(train::find_checkpoint(directory.path()).round == rounds - 1);
    const auto resumed = train_with(after, {}, [&](train::TrainerOptions& options) {
      resume_from(directory.path())(options);
      options.epochs = 2;
    });
    const int left = static_cast<int>(resumed[0].summary.rounds) - (rounds - 1);
    const int epoch = testing::train_samples / 16 / static_cast<std::size_t>(after);
    CHECK(left > epoch);
    CHECK(left <= epoch + 1 + epoch / rounds);
    CHECK(resumed[0].summary.epochs == 2);
  }
}

namespace {

/// The rounds of steps that workers are told of.
struct StepRounds final : Observer {
  void on_phase(const PhaseEvent& event) noexcept override {
    if (event.phase != Phase::step) return;
    const std::lock_guard lock(mutex);
    first = std::min(first, event.round);
    last = std::max(last, event.round);
  }
  std::mutex mutex;
  std::int64_t first = 1000, last = -1;
};

}  // namespace

TEST_CASE("with other workers, metrics, events and the summary go on counting the run's rounds") {
  const testing::TemporaryDirectory directory;
  train_with(2, {}, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = directory / "saved";
    options.checkpoints.every_rounds = 30;  // an epoch of 960 samples, 2 workers and batches of 16
    options.epochs = 1;
  });
  const auto told = std::make_shared<StepRounds>();
  const auto resumed = train_with(3, {}, [&](train::TrainerOptions& options) {
    resume_from(directory / "saved")(options);
    options.out = directory / "run";
    options.epochs = 2;  // 20 rounds with 3 workers
    options.worker.observer = told;
  });
  CHECK(resumed[0].summary.rounds == 50);
  CHECK(resumed[0].summary.epochs == 2);
  CHECK(told->first == 30);
  CHECK(told->last == 49);
  std::ifstream file(directory / "run/metrics/1.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() >= 3);
  CHECK(lines.front().at("resumed_from") == 30);
  CHECK(lines.front().at("resumed_step") == 30);
  CHECK(lines[lines.size() - 2].at("kind") == "epoch");
  CHECK(lines[lines.size() - 2].at("step") == 50);
  CHECK(lines.back().at("kind") == "end");
  CHECK(lines.back().at("step") == 50);
}

// The rate falls to a tenth after half of the run.
TEST_CASE("with any number of workers, rules know the largest rate of the run that is resumed") {
  for (const int after : {2, 3, 4}) {
    INFO("3 to " << after);
    const testing::TemporaryDirectory directory;
    const auto seen = std::make_shared<RateProbe::Seen>();
    const auto probed = [&](train::TrainerOptions& options) {
      options.learning_rate = {.base = 0.05, .schedule = train::LearningRate::Schedule::step};
      options.worker.algorithm = algorithm::elementwise(RateProbe{seen});
    };
    train_with(3, {}, [&](train::TrainerOptions& options) {
      probed(options);
      options.checkpoints.directory = directory.path();
      options.checkpoints.every_rounds = 50;
    });
    CHECK(train::find_checkpoint(directory.path()).round == 50);
    seen->rates.clear();
    train_with(after, {}, [&](train::TrainerOptions& options) {
      probed(options);
      resume_from(directory.path())(options);
    });
    CHECK(seen->rates == std::vector<double>(static_cast<std::size_t>(after), 0.05));
  }
}

TEST_CASE("diloco that sends changes agrees again when other workers resume it between exchanges") {
  const testing::TemporaryDirectory directory;
  const auto train_in = [&](int workers, const auto& change) {
    std::vector<Trained> all(static_cast<std::size_t>(workers));
    local::run(workers, [&](const Group& group) {
      train::TrainerOptions options = options_for({});
      options.worker.algorithm =
          algorithm::by_name("diloco", {{"period", "10"}, {"changes", "true"}});
      options.closing_rounds = 0;
      options.epochs = 2;
      change(options);
      all[static_cast<std::size_t>(group.rank())] =
          testing::train_small(group, stencil::complete(), options);
    });
    return all;
  };
  // An epoch has 20 rounds with 3 workers and 15 with 4: 10 rounds are left of round 27.
  train_in(3, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 27;
  });
  const auto resumed = train_in(4, resume_from(directory.path()));
  CHECK(resumed[0].summary.consensus_distance < 1e-4);
}

TEST_CASE("stale workers save when one of them does, and go on from there") {
  const testing::TemporaryDirectory directory;
  const Setting stale{"awc", "identity", 0, unbounded_staleness};
  train_with(3, stale, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 20;
    options.checkpoints.keep = 100;
    options.epochs = 20;  // of 20 rounds: no worker ends before all have begun
    options.pace.step_s = 0.002;
  });
  // 20 are due. Agreeing on each takes some rounds more.
  const auto saved = train::checkpoints_in(directory.path());
  CHECK(saved.size() >= 5);
  // The newest. When a worker has made its last round, names count up from there.
  CHECK(saved.front().first <= 400 + static_cast<std::int64_t>(saved.size()));
  // Workers that have come to their end before save, too.
  CHECK(train::find_checkpoint(directory.path()).shards.size() == 3);
  const auto resumed = train_with(3, stale, [&](train::TrainerOptions& options) {
    options.epochs = 20;
    resume_from(directory.path())(options);
  });
  CHECK(resumed[0].summary.test_accuracy_mean_model > 0.93);
}

TEST_CASE("a stop that finds some workers done and others not is resumed with all of them") {
  for (const train::Arena arena : {train::Arena::fixed, train::Arena::rotating}) {
    INFO((arena == train::Arena::fixed ? "fixed" : "rotating"));
    const testing::TemporaryDirectory directory;
    const Setting stale{"awc", "identity", 0, unbounded_staleness, arena};
    std::atomic<int> done{0};
    const auto stopped = train_with(3, stale, [&](train::TrainerOptions& options) {
      options.checkpoints.directory = directory.path();
      options.pace = {0.005, {{2, 100.0}}};
      options.worker.on_round = [&](std::int64_t round) { done += round == 60 ? 1 : 0; };
      options.checkpoints.stop_requested = [&] { return done == 2; };
    });
    for (const Trained& each : stopped) CHECK(each.summary.stopped);
    const train::Manifest manifest = train::find_checkpoint(directory.path());
    REQUIRE(manifest.shards.size() == 3);
    CHECK(train::read_shard(manifest, 0).metadata().at("fast.epoch") == "3");
    CHECK(train::read_shard(manifest, 2).metadata().at("fast.epoch") == "0");
    const auto resumed = train_with(3, stale, resume_from(directory.path()));
    CHECK_FALSE(resumed[0].summary.stopped);
    CHECK(resumed[2].summary.test_accuracy_mean_model > 0.9);
  }
}

TEST_CASE("a broken file is made up for by the neighbors', or refused") {
  const testing::TemporaryDirectory directory;
  train_with(4, {}, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 20;
    options.epochs = 2;
  });
  std::filesystem::resize_file(train::find_checkpoint(directory.path()).file(2), 100);
  std::mutex mutex;
  std::vector<std::string> messages;
  const auto listen = [&](train::TrainerOptions& options) {
    resume_from(directory.path())(options);
    options.worker.log = [&](LogLevel level, std::string_view text) {
      if (level != LogLevel::warning) return;
      const std::lock_guard lock(mutex);
      messages.emplace_back(text);
    };
  };
  const auto resumed = train_with(4, {}, listen);
  CHECK(resumed[0].summary.test_accuracy_mean_model > 0.93);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], Catch::Contains("worker-2") && Catch::Contains("neighbors' average"));
  CHECK_THROWS_WITH(train_with(4, {},
                               [&](train::TrainerOptions& options) {
                                 resume_from(directory.path())(options);
                                 options.checkpoints.strict = true;
                               }),
                    Catch::Contains("worker-2.safetensors"));
}

TEST_CASE("a strict run refuses a missing file with any number of workers") {
  const testing::TemporaryDirectory directory;
  train_with(3, {}, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 20;
    options.epochs = 1;
  });
  const auto strictly = [&](train::TrainerOptions& options) {
    resume_from(directory.path())(options);
    options.checkpoints.strict = true;
  };
  CHECK(train_with(2, {}, strictly)[0].summary.workers == 2);
  std::filesystem::remove(train::find_checkpoint(directory.path()).file(1));
  for (const int after : {1, 2, 3, 4, 5}) {
    INFO("3 to " << after);
    CHECK_THROWS_WITH(train_with(after, {}, strictly), ContainsSubstring("worker-1.safetensors"));
  }
}

TEST_CASE("the best model so far is kept without a worker's file, and with more or fewer workers") {
  const auto best_epoch = [](const testing::TemporaryDirectory& directory) {
    const train::Safetensors file = train::read_shard(train::find_checkpoint(directory.path()), 0);
    std::int64_t epoch = -1;
    for (const train::StoredTensor& tensor : file.tensors())
      if (tensor.name == "best.epoch") std::memcpy(&epoch, file.data(tensor).data(), sizeof epoch);
    return epoch;
  };
  const auto validated = [](train::TrainerOptions& options, const auto& directory, int epochs) {
    options.validation = 0.2;
    options.epochs = epochs;
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 1;
    options.checkpoints.keep = 1;
  };
  for (const int after : {3, 2, 4}) {
    INFO("3 to " << after);
    const testing::TemporaryDirectory before, later;
    train_with(3, {}, [&](auto& options) { validated(options, before, 2); });
    const std::int64_t best = best_epoch(before);
    CHECK(best == 0);
    std::filesystem::remove(train::find_checkpoint(before.path()).file(1));
    train_with(after, {}, [&](train::TrainerOptions& options) {
      validated(options, later, 4);
      options.learning_rate.base = 1e-9;  // the model does not get better
      resume_from(before.path())(options);
    });
    CHECK(best_epoch(later) == best);
  }
}

TEST_CASE("a checkpoint behind the last epoch is resumed without a step, and the log says so") {
  const testing::TemporaryDirectory directory;
  train_with(2, {}, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = directory.path();
    options.checkpoints.every_rounds = 40;  // an epoch of two workers has 30
    options.epochs = 2;
  });
  std::mutex mutex;
  std::string messages;
  const auto resumed = train_with(2, {}, [&](train::TrainerOptions& options) {
    resume_from(directory.path())(options);
    options.epochs = 1;
    options.worker.log = [&](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex);
      messages += text;
    };
  });
  CHECK_THAT(messages, Catch::Contains("resuming from round 40") &&
                           Catch::Contains("all epochs are done, no step follows"));
  CHECK(resumed[0].summary.rounds == 40);
  CHECK(resumed[0].summary.publish_fraction == 0);
}

TEST_CASE("a run that ended by its patience has a whole checkpoint, and ends there again") {
  const testing::TemporaryDirectory directory;
  std::mutex mutex;
  std::string log;
  const auto train = [&](const std::filesystem::path& resume, int patience) {
    return train_with(4, {}, [&, resume, patience](train::TrainerOptions& options) {
      options.epochs = 60;  // of 11 rounds
      options.validation = 0.25;
      options.patience = patience;
      options.checkpoints.directory = directory.path();
      options.checkpoints.every_rounds = 1;
      if (!resume.empty()) options.checkpoints.resume = resume;
      options.worker.log = [&](LogLevel, std::string_view text) {
        const std::lock_guard lock(mutex);
        log += text;
      };
    });
  };
  const std::vector<Trained> ended = train({}, 4);
  const train::Manifest manifest = train::find_checkpoint(directory.path());
  CHECK(manifest.shards.size() == 4);
  CHECK(train::read_shard(manifest, 0).metadata().at("fast.epoch_round") == "0");
  const std::string epoch = train::read_shard(manifest, 0).metadata().at("fast.epoch");
  CHECK(std::stoi(epoch) < 60);
  const std::vector<Trained> again = train(directory.path(), 4);
  CHECK_THAT(log, ContainsSubstring("the run had ended by its patience, no step follows"));
  for (const Trained& each : again) {
    CHECK(each.mean_model == ended[0].mean_model);
    CHECK(each.summary.rounds == static_cast<std::uint64_t>(manifest.round));
    CHECK(std::to_string(each.summary.epochs) == epoch);
  }
  CHECK(train(directory.path(), 60)[0].summary.epochs > again[0].summary.epochs);
}

TEST_CASE("checkpoints that are not there, or of another model, are refused") {
  const testing::TemporaryDirectory directory;
  CHECK_THROWS_WITH(train_with(2, {}, resume_from(directory / "none")),
                    Catch::Contains("no checkpoint in"));
  std::filesystem::create_directory(directory / "checkpoints");
  CHECK_THROWS_WITH(train_with(2, {}, resume_from(directory.path())),
                    Catch::Contains("give " + (directory / "checkpoints").string()));
  CHECK_THROWS_WITH(train_with(2, {}, [](auto& options) { options.checkpoints.every_rounds = 3; }),
                    Catch::Contains("without a directory"));
}
