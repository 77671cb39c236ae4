#include "train/run/output_files.hpp"

#include <fast/core/error.hpp>

#include <filesystem>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("checkpoints are beside a run's output unless they have a directory of their own") {
  train::TrainerOptions options = trainer_options();
  options.checkpoints.every_rounds = -1;
  CHECK_THROWS_WITH(train::directories_of(options), ContainsSubstring("-1 rounds"));
  options.checkpoints.every_rounds = 5;
  CHECK_THROWS_WITH(train::directories_of(options), ContainsSubstring("without a directory"));
  options.out = "out";
  CHECK(train::directories_of(options).checkpoints == std::filesystem::path("out/checkpoints"));
}

TEST_CASE("a run opens the files that its options name, and marks the directories as its own") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  with_one_worker(options, [](RunParts& parts) {
    CHECK_FALSE(parts.files.metrics);
    CHECK_FALSE(parts.files.checkpoints);
  });
  options.out = directory / "out";
  options.checkpoints.directory = directory / "checkpoints";
  with_one_worker(options, [](RunParts& parts) {
    CHECK(parts.files.metrics);
    CHECK(parts.files.checkpoints);
  });
  for (const char* name : {"out/run.json", "out/metrics/0.jsonl", "checkpoints/run.json"})
    CHECK(std::filesystem::exists(directory / name));
}
