#include <fast/core/error.hpp>
#include <fast/core/random.hpp>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "core/whole_file.hpp"
#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"
#include "train/checkpoint/checkpoint.hpp"

using namespace fast;
using namespace fast::train;

namespace {

/// Sees what reaches the disk, and when.
std::function<void(const std::filesystem::path&)> on_fsync;

/// Messages of writers' threads.
struct Messages {
  std::mutex mutex;
  std::vector<std::string> all;
  LogSink sink() {
    return [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex);
      all.emplace_back(text);
    };
  }
};

CheckpointWriter::Options options_for(const std::filesystem::path& directory, int rank = 0,
                                      int workers = 1) {
  CheckpointWriter::Options options;
  options.directory = directory;
  options.rank = rank;
  options.workers = workers;
  options.patience_s = 0;
  return options;
}

/// A model whose values are all `value`.
struct Model {
  explicit Model(float value, std::size_t size = 1000) : x(size, value), steps{7} {}
  std::vector<float> x;
  std::vector<std::int64_t> steps;
  std::vector<TensorView> views() {
    return {view_of("model.x", std::span(x)), view_of("optimizer.steps", std::span(steps))};
  }
};

void write_one(const std::filesystem::path& directory, int workers, std::int64_t round) {
  for (int rank = 0; rank < workers; ++rank) {
    CheckpointWriter writer(options_for(directory, rank, workers));
    writer.save(round, Model(static_cast<float>(rank)).views(), {{"epoch", "3"}});
  }
}

std::vector<int> first(int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}

}  // namespace

/// In place of the system's, for the whole program.
extern "C" int fsync(int descriptor) {
  if (on_fsync)
    on_fsync(std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor)));
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

TEST_CASE("a checkpoint of several workers is found, checked and read") {
  const testing::TemporaryDirectory directory;
  write_one(directory.path(), 3, 12);
  const Manifest manifest = find_checkpoint(directory.path());
  CHECK(manifest.round == 12);
  CHECK(manifest.workers == 3);
  REQUIRE(manifest.shards.size() == 3);
  const Safetensors file = read_shard(manifest, 2);
  CHECK(file.metadata().at("epoch") == "3");
  Model model(0);
  file.read(model.views());
  CHECK(model.x == std::vector<float>(1000, 2));
  CHECK(find_checkpoint(manifest.directory).round == 12);
}

TEST_CASE("of several checkpoints the newest are kept") {
  const testing::TemporaryDirectory directory;
  {
    CheckpointWriter writer(options_for(directory.path()));
    for (int round = 10; round <= 50; round += 10) writer.save(round, Model(1).views(), {});
  }
  CHECK(find_checkpoint(directory.path()).round == 50);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 2);
}

TEST_CASE("what was copied is written again in a later round, whatever the memory holds then") {
  const testing::TemporaryDirectory directory;
  CheckpointWriter writer(options_for(directory.path()));
  Model model(1);
  writer.keep(model.views(), {{"epoch", "3"}});
  std::fill(model.x.begin(), model.x.end(), 2.0F);
  for (const std::int64_t round : {10, 20}) {
    writer.save_kept(round);
    CHECK(writer.finish().empty());
    const Manifest manifest = find_checkpoint(directory.path());
    CHECK(manifest.round == round);
    const Safetensors file = read_shard(manifest, 0);
    CHECK(file.metadata().at("epoch") == "3");
    file.read(model.views());
    CHECK(model.x == std::vector<float>(1000, 1));
    std::fill(model.x.begin(), model.x.end(), 2.0F);
  }
}

TEST_CASE("the newest checkpoint that lacks nobody outlives newer ones that do") {
  const testing::TemporaryDirectory directory;
  for (const std::int64_t round : {10, 20}) write_one(directory.path(), 2, round);
  CheckpointWriter writer(options_for(directory.path(), 0, 2));
  for (int round = 30; round <= 60; round += 10) writer.save(round, Model(1).views(), {});
  writer.wait();
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    left.insert(entry.path().filename().string().substr(0, 18));
  CHECK(left.contains("round-000000000020"));
  CHECK_FALSE(left.contains("round-000000000010"));
  CHECK_FALSE(left.contains("round-000000000030"));
  CHECK(find_checkpoint(directory.path()).round >= 50);
}

TEST_CASE("files of workers that have left are not waited for, also when there are more workers") {
  const testing::TemporaryDirectory directory;
  CheckpointWriter::Options options = options_for(directory.path(), 0, 2);
  options.patience_s = 600;  // the test would not end in time
  CheckpointWriter writer(options);
  writer.expect(3, [] { return std::vector<int>{1, 2}; });
  writer.save(5, Model(0).views(), {});
  CHECK(writer.finish().empty());
  const Manifest manifest = find_checkpoint(directory.path());
  CHECK(manifest.workers == 3);
  CHECK(manifest.shards.size() == 1);
}

TEST_CASE("a checkpoint that becomes void while it waits for other workers is dropped") {
  const testing::TemporaryDirectory directory;
  Messages messages;
  CheckpointWriter::Options options = options_for(directory.path(), 0, 2);
  options.patience_s = 600;  // the test would not end in time
  options.log = messages.sink();
  std::atomic<bool> has_ended = false;
  CheckpointWriter writer(options);
  writer.expect(
      2, [] { return std::vector<int>{}; },
      [&](std::int64_t round) { return has_ended && round > 10; });
  writer.save(10, Model(0).views(), {});
  writer.save(20, Model(0).views(), {});
  writer.wait();
  CHECK(std::filesystem::exists(directory / "round-000000000020/worker-0.safetensors"));
  has_ended = true;
  writer.save(30, Model(0).views(), {});
  CheckpointWriter::Options other = options_for(directory.path(), 1, 2);
  CheckpointWriter(other).save(10, Model(1).views(), {});
  CHECK(writer.finish().empty());
  CHECK_FALSE(std::filesystem::exists(directory / "round-000000000020"));
  CHECK_FALSE(std::filesystem::exists(directory / "round-000000000030"));
  CHECK(find_checkpoint(directory.path()).shards.size() == 2);
  CHECK(messages.all.empty());
}

TEST_CASE("a file that comes after the next checkpoint's is in its own manifest") {
  const testing::TemporaryDirectory directory;
  CheckpointWriter::Options options = options_for(directory.path(), 0, 2);
  options.patience_s = 600;
  CheckpointWriter fast(options);
  fast.save(10, Model(0).views(), {});
  fast.save(20, Model(0).views(), {});
  fast.wait();
  CHECK_THROWS_WITH(find_checkpoint(directory.path()), ContainsSubstring("no checkpoint"));
  options.rank = 1;
  CheckpointWriter slow(options);
  slow.save(10, Model(1).views(), {});
  CHECK(slow.finish().empty());
  CHECK(find_checkpoint(directory.path()).round == 10);
  CHECK(find_checkpoint(directory.path()).shards.size() == 2);
  slow.save(20, Model(1).views(), {});
  CHECK(slow.finish().empty());
  CHECK(fast.finish().empty());
  CHECK(find_checkpoint(directory.path()).round == 20);
}

TEST_CASE("a worker that never writes is not waited for") {
  const testing::TemporaryDirectory directory;
  for (const int rank : {0, 2}) {
    CheckpointWriter writer(options_for(directory.path(), rank, 3));
    writer.save(5, Model(static_cast<float>(rank)).views(), {});
  }
  const Manifest manifest = find_checkpoint(directory.path());
  CHECK(manifest.shards.size() == 2);
  CHECK_THROWS_WITH(read_shard(manifest, 1), Catch::Contains("never written"));
  Messages messages;
  const OwnedTensors mean = average_shards(manifest, first(3), model_prefix, messages.sink());
  REQUIRE(mean.views.size() == 1);
  CHECK(mean.views[0].name == "x");
  CHECK(mean.memory[0].as<float>()[999] == 1);
  CHECK(messages.all.size() == 1);
}

TEST_CASE("a worker that may not write any more leaves the other files as they are") {
  const testing::TemporaryDirectory directory;
  write_one(directory.path(), 1, 100);
  bool may = true;
  CheckpointWriter::Options options = options_for(directory.path());
  options.may_write = [&] { return may; };
  CheckpointWriter writer(options);
  writer.save(200, Model(1).views(), {});
  writer.finish();
  CHECK(find_checkpoint(directory.path()).round == 200);
  may = false;
  writer.save(300, Model(2).views(), {});
  CHECK(writer.finish().empty());
  CHECK(find_checkpoint(directory.path()).round == 200);
  CHECK_FALSE(std::filesystem::exists(directory.path() / "round-000000000300"));
}

TEST_CASE("a file that has been changed is refused, and left out of averages") {
  const testing::TemporaryDirectory directory;
  write_one(directory.path(), 2, 1);
  const Manifest manifest = find_checkpoint(directory.path());
  std::string bytes = contents(manifest.file(1));
  bytes[bytes.size() - 3] ^= 1;  // a weight: only the hash tells
  std::ofstream(manifest.file(1), std::ios::binary) << bytes;
  CHECK_THROWS_WITH(read_shard(manifest, 1), Catch::Contains("hash"));
  CHECK(average_shards(manifest, first(2), model_prefix).memory[0].as<float>()[0] == 0);
  CHECK_THROWS_WITH(average_shards(manifest, {1}, model_prefix), Catch::Contains("none of 1"));
}

TEST_CASE("a thousand mutations of a manifest are read or refused, and nothing else happens") {
  const testing::TemporaryDirectory directory;
  write_one(directory.path(), 2, 1);
  const auto path = find_checkpoint(directory.path()).directory / "manifest.json";
  const std::string whole = contents(path);
  const std::uint64_t seed = test_seed(21);
  INFO("seed " << seed);
  Rng rng(seed);
  int refused = 0, differing = 0;
  for (int k = 0; k < 1000; ++k) {
    std::string bytes = whole;
    const std::size_t at = rng.below(bytes.size());
    if (k % 3 == 0) bytes.resize(at);
    if (k % 3 == 1) bytes[at] ^= static_cast<char>(1 << rng.below(8));
    if (k % 3 == 2) bytes.insert(at, std::string(1 + rng.below(3), "09[{\"-e"[rng.below(7)]));
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      differing += read_manifest(path.parent_path()).round == 1 ? 0 : 1;
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      ++refused;
    }
  }
  CHECK(refused > 900);
  CHECK(differing == 0);
}

TEST_CASE("a full disk leaves the older checkpoint, says so, and does not end the run") {
  const testing::TemporaryDirectory directory;
  Messages messages;
  auto options = options_for(directory.path());
  options.log = messages.sink();
  CheckpointWriter writer(options);
  writer.save(1, Model(1).views(), {});
  writer.wait();
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{2000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  writer.save(2, Model(2).views(), {});
  writer.wait();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  REQUIRE(messages.all.size() == 1);
  CHECK_THAT(messages.all[0], Catch::Contains("round 2") && Catch::Contains("training goes on"));
  writer.save(3, Model(3).views(), {});
  writer.wait();
  CHECK(messages.all.size() == 1);
  CHECK(read_manifest(directory / "round-000000000001").round == 1);
}

TEST_CASE("the name of a new checkpoint reaches the disk before an older checkpoint is removed") {
  const testing::TemporaryDirectory directory;
  auto options = options_for(directory.path());
  options.keep = 1;
  const auto is_whole = [&](int round) {
    return std::filesystem::exists(directory / fmt::format("round-{:012}/manifest.json", round));
  };
  bool newer_was_safe = false;
  CheckpointWriter(options).save(1, Model(1).views(), {});
  on_fsync = [&](const std::filesystem::path& path) {
    newer_was_safe = newer_was_safe || (path == directory.path() && is_whole(1) && is_whole(2));
  };
  CheckpointWriter(options).save(2, Model(2).views(), {});
  on_fsync = {};
  CHECK_FALSE(is_whole(1));
  CHECK(newer_was_safe);
}

TEST_CASE("a temporary file of another writer is never taken, whatever its name") {
  const testing::TemporaryDirectory directory;
  write_durably(directory / "file", {bytes_of("first")});
  const auto other = [&](int k) {  // a container with the same process number counts from 0, too
    return directory / fmt::format("file.tmp-{}-{}", getpid(), k);
  };
  for (int k = 0; k < 1000; ++k) std::ofstream(other(k)) << "another writer's";
  write_durably(directory / "file", {bytes_of("second")});
  CHECK(contents(directory / "file") == "second");
  for (int k = 0; k < 1000; ++k) REQUIRE(contents(other(k)) == "another writer's");
}

/// The child writes one checkpoint after the other, each of one value throughout, until it is
/// killed.
TEST_CASE("killed at 200 random moments, a writer always leaves a whole checkpoint") {
  const testing::TemporaryDirectory directory("/dev/shm");  // where reaching the disk takes no time
  write_one(directory.path(), 1, 0);
  const std::uint64_t seed = test_seed(22);
  INFO("seed " << seed);
  Rng rng(seed);
  std::int64_t round = 0;
  for (int kill_count = 0; kill_count < 200; ++kill_count) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      CheckpointWriter writer(options_for(directory.path()));
      for (std::int64_t r = round + 1;; ++r) {
        writer.save(r, Model(static_cast<float>(r), 20'000).views(), {});
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(15'000)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const Manifest manifest = find_checkpoint(directory.path());
    REQUIRE(manifest.round >= round);
    round = manifest.round;
    if (round == 0) continue;
    Model model(0, 20'000);
    read_shard(manifest, 0).read(model.views());
    REQUIRE(model.x == std::vector<float>(20'000, static_cast<float>(round)));
  }
  CHECK(round > 20);
}
