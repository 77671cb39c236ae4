#include "train/record/run_metrics.hpp"

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;
using train::RunMetrics;

namespace {

std::vector<nlohmann::json> written(const TemporaryDirectory& directory) {
  std::ifstream in(directory / "metrics/2.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// Worker 2's file.
void put_on_full_disk(const TemporaryDirectory& directory) {
  std::filesystem::create_directory(directory / "metrics");
  std::filesystem::create_symlink("/dev/full", directory / "metrics/2.jsonl");
}

PhaseEvent step_of(double seconds) {
  PhaseEvent event;
  event.began = Clock::now();
  event.ended = event.began + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  return event;
}

MilestoneEvent in_round_20(MilestoneEvent::Kind kind) {
  MilestoneEvent event;
  event.kind = kind;
  event.round = 20;
  return event;
}

}  // namespace

TEST_CASE("what happens to workers becomes lines of events") {
  const TemporaryDirectory directory;
  RunMetrics metrics({});
  metrics.on_peer({PeerEvent::Kind::suspected, 2, 3, 17, Clock::now()});  // before there is a file
  metrics.open(directory.path(), 2);
  metrics.on_peer({PeerEvent::Kind::suspected, 2, 3, 17, Clock::now()});
  metrics.on_milestone(in_round_20(MilestoneEvent::Kind::saved));
  metrics.on_milestone(in_round_20(MilestoneEvent::Kind::epoch_ended));
  metrics.event("seat taken", 21, 2, "from \"1\"");
  const auto lines = written(directory);
  REQUIRE(lines.size() == 3);
  for (const auto& line : lines) CHECK(line.at("kind") == "event");
  CHECK(lines[0].at("event") == "suspected");
  CHECK(lines[0].at("worker") == 3);
  CHECK(lines[0].at("step") == 17);
  CHECK(lines[1].at("event") == "checkpoint");
  CHECK(lines[1].at("step") == 20);
  CHECK_FALSE(lines[1].contains("worker"));
  CHECK(lines[2].at("text") == "from \"1\"");
}

TEST_CASE("a spare that takes a seat continues the lines of the worker before it") {
  const TemporaryDirectory directory;
  RunMetrics metrics({});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  metrics.open(directory.path(), 2);
  metrics.join(21);
  const auto lines = written(directory);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("event") == "seat taken");
  CHECK(lines[0].at("seconds") >= 0.05);
}

TEST_CASE("a line of an epoch has what was added since the epoch began, until its rounds ended") {
  const TemporaryDirectory directory;
  RunMetrics metrics({});
  metrics.open(directory.path(), 2);
  metrics.start({{"workers", 4}});
  metrics.after_round({1, 1, 100, 0});
  metrics.on_phase(step_of(50));
  metrics.begin_epoch();
  metrics.on_phase(step_of(0.5));
  metrics.on_phase(step_of(0.25));
  metrics.after_round({3, 1, 164, 0.125});
  metrics.end_rounds();
  metrics.on_phase(step_of(70));
  metrics.end_epoch({{"epoch", 1}});
  const auto lines = written(directory);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("kind") == "start");
  CHECK(lines[1].at("kind") == "epoch");
  CHECK(lines[1].at("epoch") == 1);
  CHECK(lines[1].at("samples") == 64);
  CHECK(lines[1].at("samples_per_second") > 0);
  CHECK(lines[1].at("phases").at("step").get<double>() == Approx(0.625));
  CHECK(lines[1].at("phases").at("wait").get<double>() == Approx(0.125));
  CHECK(lines[1].at("phases").at("rest") == 0);
  CHECK(lines[1].at("waits") == nlohmann::json::object());
  CHECK_FALSE(lines[1].contains("age_mean"));
}

TEST_CASE("a line of an epoch has the latest figures of sites, without those that are forgotten") {
  const TemporaryDirectory directory;
  RunMetrics metrics({});
  metrics.open(directory.path(), 2);
  metrics.begin_epoch();
  metrics.end_epoch({{"epoch", 1}});
  for (const double value : {1, 2}) {
    metrics.on_scalar({"site/exchanges", value, 2, 20, Clock::now()});
    metrics.on_scalar({"site/waited_s", value / 4, 2, 20, Clock::now()});
    metrics.on_scalar({"train/loss", value, 2, 20, Clock::now()});
    metrics.on_scalar({"site/of/a/round", value, 2, 20, Clock::now()});
    metrics.on_scalar({"site/of/ab/round", value, 2, 20, Clock::now()});
  }
  metrics.on_site({.kind = SiteEvent::Kind::read, .site = "ab"});
  metrics.on_site({.kind = SiteEvent::Kind::forgotten, .site = "a"});
  metrics.end_epoch({{"epoch", 2}});
  const auto lines = written(directory);
  REQUIRE(lines.size() == 2);
  CHECK_FALSE(lines[0].contains("site"));
  CHECK(lines[1].at("site") ==
        nlohmann::json({{"exchanges", 2.0}, {"of/ab/round", 2.0}, {"waited_s", 0.5}}));
}

TEST_CASE("a run that fails ends with its message and a last line that says so") {
  const TemporaryDirectory directory;
  RunMetrics metrics({});
  metrics.open(directory.path(), 2);
  metrics.start({{"workers", 4}});
  metrics.after_round({7, 1, 100, 0});
  metrics.fail("the loss of worker 2 is nan");
  const auto lines = written(directory);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].at("event") == "failed");
  CHECK(lines[1].at("text") == "the loss of worker 2 is nan");
  CHECK(lines[2].at("kind") == "end");
  CHECK(lines[2].at("state") == "failed");
  CHECK(lines[2].at("step") == 7);
}

TEST_CASE("a run that fails before its first round has made those that it was resumed from") {
  for (const bool takes_seat : {false, true}) {
    const TemporaryDirectory directory;
    RunMetrics metrics({});
    metrics.open(directory.path(), 2);
    takes_seat ? metrics.join(40) : metrics.start({{"workers", 4}}, 40);
    metrics.fail("its samples cannot be read");
    const auto lines = written(directory);
    REQUIRE(lines.size() == 3);
    for (const std::size_t line : {1, 2}) CHECK(lines[line].at("step") == 40);
  }
}

/// The thread sanitizer looks at this one.
TEST_CASE("another thread may tell events while training begins, each in a line of its own") {
  const TemporaryDirectory directory;
  RunMetrics metrics({});
  metrics.open(directory.path(), 2);
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      metrics.on_peer({PeerEvent::Kind::suspected, 2, 3, i, Clock::now()});
    }
  });
  for (int i = 0; i < 10; ++i) metrics.start({{"workers", 4}});
  other.join();
  CHECK(written(directory).size() == 110);
}

TEST_CASE("a full disk costs lines of metrics and gives one warning") {
  if (!std::filesystem::exists("/dev/full")) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const TemporaryDirectory directory;
  put_on_full_disk(directory);
  std::vector<std::string> messages;
  RunMetrics metrics([&](LogLevel, std::string_view text) { messages.emplace_back(text); });
  metrics.open(directory.path(), 2);
  for (int epoch = 1; epoch <= 3; ++epoch) metrics.end_epoch({{"epoch", epoch}});
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], ContainsSubstring("worker 2") && ContainsSubstring("free space"));
}

TEST_CASE("while the warning of a full disk is logged, other threads may add lines") {
  if (!std::filesystem::exists("/dev/full")) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const TemporaryDirectory directory;
  put_on_full_disk(directory);
  RunMetrics* all = nullptr;
  std::future<void> line;
  std::future_status status = std::future_status::deferred;
  RunMetrics metrics([&](LogLevel, std::string_view) {
    line = std::async(std::launch::async, [&] { all->event("stopped", 1); });
    status = line.wait_for(std::chrono::seconds(10));
  });
  all = &metrics;
  metrics.open(directory.path(), 2);
  metrics.end_epoch({{"epoch", 1}});
  CHECK(status == std::future_status::ready);
}
