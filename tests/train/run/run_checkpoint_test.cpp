#include "train/run/checkpoint_schedule.hpp"

#include <atomic>
#include <thread>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

train::TrainerOptions saving_in(const TemporaryDirectory& directory) {
  train::TrainerOptions options = trainer_options();
  options.checkpoints.directory = directory.path();
  options.checkpoints.keep = 9;
  return options;
}

train::RunCheckpoint checkpoint_of(RunParts& parts) {
  return {parts.plan, parts.agreement, parts.state, std::move(parts.files.checkpoints)};
}

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Rounds without training, until `most` are made or the run is stopped.
void make_rounds(RunParts& parts, train::RunCheckpoint& checkpoint, std::int64_t most) {
  while (parts.position.rounds() < most && checkpoint.may_go_on(0.01)) {
    parts.position.advance(1);
    checkpoint.after_round();
  }
}

}  // namespace

TEST_CASE("a run saves after every so many rounds") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = saving_in(directory);
  options.checkpoints.every_rounds = 4;
  with_one_worker(options, [](RunParts& parts) {
    auto checkpoint = checkpoint_of(parts);
    CHECK(checkpoint.saves());
    make_rounds(parts, checkpoint, 10);
    CHECK_FALSE(checkpoint.stopped());
    checkpoint.end(false);
    CHECK_FALSE(checkpoint.conclude({}));
  });
  CHECK(names_in(directory.path()) ==
        std::vector<std::string>{"round-000000000004", "round-000000000008"});
}

TEST_CASE(
    "a slow stale worker saves after another one has ended, which saves its last state, too") {
  const TemporaryDirectory directory;
  train::TrainerOptions options = saving_in(directory);
  options.worker.staleness = unbounded_staleness;
  options.worker.suspect_after = Seconds(30);  // files of others are waited for twice as long
  options.checkpoints.every_rounds = 5;
  const Deadline limit(Seconds(40));
  local::run(2, [&](const Group& group) {
    const auto backend = small_backend();
    RunParts parts(group, *backend, options);
    auto checkpoint = checkpoint_of(parts);
    if (group.rank() == 0) {
      parts.position.advance(1'000'000);  // the other worker will not come to that round
    } else {
      const Deadline deadline(Seconds(20));
      while (names_in(directory.path()).size() < 3 && !deadline.expired()) {
        make_rounds(parts, checkpoint, parts.position.rounds() + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    checkpoint.end(false);
    checkpoint.conclude({});
  });
  const std::vector<std::string> names = names_in(directory.path());
  REQUIRE(names.size() >= 3);
  CHECK(names[0] == "round-000001000000");
  CHECK(names[1] == "round-000001000001");
  CHECK(names[2] == "round-000001000002");
  CHECK_FALSE(limit.expired());
  for (const std::string& name : names) {
    const train::Manifest manifest = train::read_manifest(directory / name);
    REQUIRE(manifest.shards.size() == 2);
    CHECK(train::read_shard(manifest, 0).metadata().at("fast.round") == "1000000");
  }
}

TEST_CASE("a worker that joins saves the checkpoint of the round in which it begins") {
  for (const bool joins : {false, true}) {
    const TemporaryDirectory directory;
    train::TrainerOptions options = saving_in(directory);
    options.checkpoints.every_rounds = 4;
    with_one_worker(options, [joins](RunParts& parts) {
      parts.position.advance(8);
      train::RunCheckpoint checkpoint{parts.plan, parts.agreement, parts.state,
                                      std::move(parts.files.checkpoints), joins};
      checkpoint.note_epoch(8);
      checkpoint.end(false);
      CHECK_FALSE(checkpoint.conclude({}));
    });
    // The others have that checkpoint: they were resumed from it, or are there and save it, too.
    const std::vector<std::string> own{"round-000000000008"};
    CHECK(names_in(directory.path()) == (joins ? own : std::vector<std::string>{}));
  }
}

TEST_CASE("a run that is asked to stop saves in that round, and says so") {
  const TemporaryDirectory directory;
  std::atomic<bool> asked = false;
  train::TrainerOptions options = saving_in(directory);
  options.checkpoints.stop_requested = [&] { return asked.load(); };
  std::int64_t rounds = 0;
  with_one_worker(options, [&](RunParts& parts) {
    auto checkpoint = checkpoint_of(parts);
    make_rounds(parts, checkpoint, 3);
    asked = true;
    const Deadline deadline(Seconds(30));
    while (!checkpoint.stopped() && !deadline.expired()) {
      make_rounds(parts, checkpoint, parts.position.rounds() + 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    checkpoint.end(false);
    CHECK(checkpoint.conclude({}));
    CHECK(checkpoint.leave().empty());
    rounds = parts.position.rounds();
  });
  CHECK(train::find_checkpoint(directory.path()).round == rounds);
}

namespace {

/// Asks a run to stop before its first round.
void stop_at_once(train::TrainerOptions options) {
  options.checkpoints.stop_requested = [] { return true; };
  with_one_worker(options, [](RunParts& parts) {
    auto checkpoint = checkpoint_of(parts);
    const Deadline deadline(Seconds(30));
    while (!checkpoint.agreement().stop_is_settled() && !deadline.expired()) {
      checkpoint.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK_FALSE(checkpoint.may_go_on(0.01));
    checkpoint.end(false);
    CHECK(checkpoint.conclude({}));
    CHECK(checkpoint.leave().empty());
  });
}

}  // namespace

TEST_CASE("a run that is stopped before its first round saves, where there is no checkpoint yet") {
  const TemporaryDirectory first, second;
  const std::vector<std::string> beginning{"round-000000000000"};
  stop_at_once(saving_in(first));
  CHECK(names_in(first.path()) == beginning);
  train::TrainerOptions elsewhere = saving_in(second);
  elsewhere.checkpoints.resume = first.path();
  stop_at_once(elsewhere);
  CHECK(names_in(second.path()) == beginning);
  // A run that goes on in its own directory has the checkpoint that it goes on from.
  for (const auto& resumed : {first.path(), first.path() / beginning.front()}) {
    const auto file = first.path() / beginning.front() / "worker-0.safetensors";
    const auto written = std::filesystem::last_write_time(file);
    train::TrainerOptions in_place = saving_in(first);
    in_place.checkpoints.resume = resumed;
    stop_at_once(in_place);
    CHECK(std::filesystem::last_write_time(file) == written);
  }
}

TEST_CASE("a run without a directory for checkpoints saves none") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    auto checkpoint = checkpoint_of(parts);
    CHECK_FALSE(checkpoint.saves());
    make_rounds(parts, checkpoint, 10);
    checkpoint.end(false);
    CHECK_FALSE(checkpoint.conclude({}));
  });
}
