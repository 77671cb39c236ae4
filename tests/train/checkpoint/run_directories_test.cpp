// Runs that would write where another run has written.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>

#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/temporary_directory.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/checkpoint/run_directories.hpp"
#include "train/metrics.hpp"
#include "train/training.hpp"

using namespace fast;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using std::filesystem::path;

namespace {

/// Of two workers, with checkpoints; what they logged.
template <class Change>
std::string run_to(const path& out, const Change& change) {
  std::mutex mutex;
  std::string said;
  local::run(2, [&](const Group& group) {
    train::TrainerOptions options = testing::trainer_options();
    options.out = out;
    options.checkpoints.every_rounds = 20;
    options.worker.log = [&](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex);
      said += std::string(text) + "\n";
    };
    change(options);
    testing::train_small(group, stencil::ring(), options);
  });
  return said;
}

auto plainly() {
  return [](train::TrainerOptions&) {};
}
auto resuming(const path& checkpoints) {
  return
      [checkpoints](train::TrainerOptions& options) { options.checkpoints.resume = checkpoints; };
}
auto overwriting() {
  return [](train::TrainerOptions& options) { options.overwrite = true; };
}

/// What is there, and the bytes of all of it.
std::map<path, std::string> everything(const path& directory) {
  std::map<path, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    all[entry.path()] = entry.is_regular_file() ? contents(entry.path()) : "";
  return all;
}

std::ptrdiff_t epochs_in(const path& file) {
  std::ifstream in(file);
  std::ptrdiff_t epochs = 0;
  for (std::string line; std::getline(in, line);) epochs += line.starts_with(R"({"kind":"epoch")");
  return epochs;
}

}  // namespace

TEST_CASE("a directory that holds a run is refused, and stays as it is") {
  const testing::TemporaryDirectory directory;
  run_to(directory / "a", plainly());
  const auto before = everything(directory.path());
  CHECK_THROWS_WITH(run_to(directory / "a", plainly()),
                    ContainsSubstring((directory / "a").string()) &&
                        ContainsSubstring("holds a run already") &&
                        ContainsSubstring("--overwrite"));
  CHECK((everything(directory.path()) == before));
  std::filesystem::remove(directory / "a/metrics/0.jsonl");
  CHECK_THROWS_WITH(run_to(directory / "a", plainly()), ContainsSubstring("metrics/1.jsonl"));
  std::filesystem::remove_all(directory / "a/metrics");
  const std::string merged = contents(directory / "a/metrics.jsonl");
  CHECK_THROWS_WITH(run_to(directory / "a", plainly()), ContainsSubstring("(metrics.jsonl)"));
  std::filesystem::rename(directory / "a/mean-model.safetensors", directory / "model");
  CHECK_THROWS_WITH(run_to(directory / "a", plainly()), ContainsSubstring("(metrics.jsonl)"));
  CHECK(contents(directory / "a/metrics.jsonl") == merged);
  std::filesystem::rename(directory / "model", directory / "a/mean-model.safetensors");
  std::filesystem::remove(directory / "a/metrics.jsonl");
  CHECK_THROWS_WITH(run_to(directory / "a", plainly()), ContainsSubstring("mean-model"));
}

TEST_CASE("a run that goes on from another's checkpoints deletes nothing of a third one") {
  const testing::TemporaryDirectory directory;
  run_to(directory / "a", plainly());
  run_to(directory / "b", plainly());
  const auto before = everything(directory.path());
  const path a = directory / "a/checkpoints";
  CHECK_THROWS_WITH(run_to(directory / "b", resuming(a)),
                    ContainsSubstring((directory / "b").string()) &&
                        ContainsSubstring(a.string()) && ContainsSubstring("another run"));
  const auto only_checkpoints = [&](train::TrainerOptions& options) {
    resuming(a)(options);
    options.out.reset();
    options.checkpoints.directory = directory / "b/checkpoints";
  };
  CHECK_THROWS_WITH(
      run_to({}, only_checkpoints),
      ContainsSubstring((directory / "b/checkpoints").string()) && ContainsSubstring(a.string()));
  CHECK((everything(directory.path()) == before));
  run_to(directory / "c", resuming(a));
  CHECK(std::filesystem::exists(directory / "c/mean-model.safetensors"));
}

TEST_CASE("a run that goes on in its place says so and adds to its metrics") {
  const testing::TemporaryDirectory directory;
  const bool beside = GENERATE(false, true);  // checkpoints in a directory of their own
  const path out = directory / "out", saved = beside ? directory / "saved" : out / "checkpoints";
  const auto with_place = [&](const auto& change) {
    return [&, change](train::TrainerOptions& options) {
      if (beside) options.checkpoints.directory = saved;
      change(options);
    };
  };
  run_to(out, with_place([](auto& options) { options.epochs = 2; }));
  REQUIRE(epochs_in(out / "metrics/1.jsonl") == 2);
  const std::string said = run_to(out, with_place(resuming(saved)));
  CHECK_THAT(said, ContainsSubstring("resuming from round 60 of " + saved.string()));
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  CHECK(epochs_in(out / "metrics/1.jsonl") == 3);
  CHECK(epochs_in(out / "metrics/0.jsonl") == 3);
}

TEST_CASE("a directory to which another run writes now is refused, also for a run that resumes") {
  const testing::TemporaryDirectory directory;
  const path out = directory / "out", saved = directory / "saved";
  const auto beside = [&](const auto& change) {
    return [&, change](train::TrainerOptions& options) {
      options.checkpoints.directory = saved;
      change(options);
    };
  };
  run_to(out, beside([](auto& options) { options.epochs = 2; }));
  for (const path& busy : {out, saved}) {
    const train::DirectoryLock other(busy);
    const auto before = everything(directory.path());
    CHECK_THROWS_WITH(run_to(out, beside(resuming(saved))),
                      ContainsSubstring("another run writes to " + busy.string()));
    CHECK((everything(directory.path()) == before));
  }
  CHECK_NOTHROW(run_to(out, beside(resuming(saved))));
}

TEST_CASE("a run holds its directories while it trains, which may be one directory") {
  const testing::TemporaryDirectory directory;
  const path out = directory / "out";
  std::atomic<int> refused{0};
  run_to(out, [&](train::TrainerOptions& options) {
    options.checkpoints.directory = out;
    options.worker.on_round = [&](std::int64_t round) {
      if (round != 5) return;
      try {
        train::DirectoryLock(out).require_alone(Seconds(0.1));
      } catch (const Error&) {
        ++refused;
      }
    };
  });
  CHECK(refused == 2);
  CHECK_NOTHROW(train::DirectoryLock(out).require_alone(Seconds(0.1)));
}

TEST_CASE("a run's output and checkpoints may be one new directory under two names") {
  const testing::TemporaryDirectory directory;
  const path out = directory / "out";
  const path other_name = out / "";  // with a slash at the end
  std::filesystem::create_directory_symlink(directory.path(), directory / "link");
  for (const path& name : {other_name, directory / "link/out"}) {
    CHECK_NOTHROW(
        run_to(out, [&](train::TrainerOptions& options) { options.checkpoints.directory = name; }));
    CHECK_NOTHROW(train::find_checkpoint(out));
    std::filesystem::remove_all(out);
  }
}

TEST_CASE("overwriting removes what a run has written and nothing else") {
  const testing::TemporaryDirectory directory;
  const path out = directory / "out";
  run_to(out, [](auto& options) { options.epochs = 4; });
  const std::vector<path> kept = {out / "notes.txt",
                                  out / "config-mine.toml",
                                  out / "config-3.toml",
                                  out / "logs/mine.log",
                                  out / "traces/mine",
                                  out / "tensorboard/mine/x",
                                  out / "metrics/mine.jsonl",
                                  out / "checkpoints/round-old/x",
                                  out / "checkpoints/round-000000000100/notes"};
  for (const path& file : kept) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "mine";
  }
  std::ofstream(out / "metrics/7.jsonl") << "{}\n";
  const std::vector<path> removed = {out / "config.toml", out / "traces/trace-3.0a.pftrace",
                                     out / "tensorboard/worker-1/events.out.tfevents.1.host.2"};
  for (const path& file : removed) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "# fast-train 0.1.0\n";
  }
  run_to(out, overwriting());
  for (const path& file : kept) CHECK(contents(file) == "mine");
  for (const path& file : removed) CHECK_FALSE(std::filesystem::exists(file));
  CHECK_FALSE(std::filesystem::exists(out / "metrics/7.jsonl"));
  CHECK_FALSE(std::filesystem::exists(out / "checkpoints/round-000000000120"));
  CHECK_FALSE(std::filesystem::exists(out / "checkpoints/round-000000000100/manifest.json"));
  CHECK(epochs_in(out / "metrics/0.jsonl") == 3);
  CHECK(train::find_checkpoint(out / "checkpoints").round == 80);
}

TEST_CASE("what is left by a run that ended before its first result is in nobody's way") {
  const testing::TemporaryDirectory directory;
  const auto failing = [](train::TrainerOptions& options) {
    options.worker.on_round = [](std::int64_t) { throw std::runtime_error("at once"); };
  };
  CHECK_THROWS(run_to(directory / "out", failing));
  run_to(directory / "out", plainly());
}

TEST_CASE("a line of metrics that was cut off does not spoil the next one") {
  const testing::TemporaryDirectory directory;
  const path file = directory / "metrics/0.jsonl";
  std::filesystem::create_directory(file.parent_path());
  const std::string before = "{\"epoch\":1}\n{\"epo";
  std::ofstream(file) << before;
  train::MetricsWriter(directory.path(), 0).write("epoch", {{"epoch", 2}});
  CHECK_THAT(contents(file),
             StartsWith(before + "\n{\"kind\":\"epoch\",") && EndsWith(",\"epoch\":2}\n"));
}
