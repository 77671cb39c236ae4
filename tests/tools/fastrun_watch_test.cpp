#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

#include "fastrun/watch.hpp"
#include "support/catch.hpp"

using namespace fastrun;
using fast::Clock;

namespace {

const Clock::time_point now = Clock::now();

WatchedRank training(long step, double speed = 100) {
  WatchedRank rank;
  rank.host = "node";
  take_status(rank, "step " + std::to_string(step) + " samples_per_second " + std::to_string(speed),
              now);
  return rank;
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

}  // namespace

TEST_CASE("a status sets what it names and nothing else") {
  WatchedRank rank;
  take_status(rank, "step 120 epoch 2 later 7 samples_per_second 5012.5 wait 0.25 age nan odd",
              now);
  CHECK(rank.step == 120);
  CHECK(rank.epoch == 2);
  CHECK(rank.samples_per_second == 5012.5);
  CHECK(rank.wait == 0.25);
  CHECK(std::isnan(rank.age));
  take_status(rank, "step 130", now);
  CHECK(rank.step == 130);
  CHECK(rank.wait == 0.25);
}

TEST_CASE("a rank that says nothing is silent, a stopped one is stopped") {
  WatchedRank rank;
  CHECK(rank.state_at(now) == "starting");
  take_status(rank, "step 1", now);
  CHECK(rank.state_at(now + std::chrono::seconds(4)) == "training");
  CHECK(rank.state_at(now + std::chrono::seconds(12)) == "silent for 12 s");
  rank.stopped = true;
  CHECK(rank.state_at(now) == "stopped");
}

TEST_CASE("a table has a line for each rank where they fit") {
  std::vector<WatchedRank> ranks = {training(7, 1000), training(9, 500), WatchedRank{}};
  ranks[1].words = "worker 1: \x1b[2J odd";
  const auto lines = lines_in(watch_table(ranks, {120, 24}, now));
  REQUIRE(lines.size() == 5);
  CHECK_THAT(lines[0], ContainsSubstring("2 of 3 ranks train, round 7..9, 1500 samples/s"));
  CHECK_THAT(lines[2], ContainsSubstring("    0  node") && ContainsSubstring("training"));
  CHECK_THAT(lines[3], ContainsSubstring("worker 1: \\x1b[2J odd"));
  CHECK_THAT(lines[4], ContainsSubstring("starting"));
}

TEST_CASE("a table fits every screen, and shows those that matter") {
  std::vector<WatchedRank> ranks;
  for (long r = 0; r < 64; ++r) ranks.push_back(training(1000 + r, 10));
  ranks[40] = training(3);
  ranks[50].state = "died of signal 9 (Killed)";
  ranks[50].trains = false;
  for (const std::size_t height : {5U, 10U, 24U, 80U}) {
    for (const std::size_t width : {20U, 80U, 200U}) {
      const auto lines = lines_in(watch_table(ranks, {width, height}, now));
      CHECK(lines.size() <= height - 1);
      for (const std::string& line : lines) CHECK(line.size() < width);
    }
  }
  const std::string small = watch_table(ranks, {100, 10}, now);
  CHECK_THAT(small,
             ContainsSubstring("63 of 64 ranks train, round 3..1063") &&
                 ContainsSubstring("\n   40  ") && ContainsSubstring("\n   50  ") &&
                 ContainsSubstring("died of signal 9") &&
                 ContainsSubstring("and 58 more: 58 train, round 1004..1063, 580 samples/s"));
  CHECK(lines_in(watch_table(ranks, {100, 80}, now)).size() == 2 + 64);
}

TEST_CASE("without a terminal there is a line for all, and one for each that does not train") {
  std::vector<WatchedRank> ranks = {training(7), training(7), training(5)};
  ranks[2].stopped = true;
  const auto lines = lines_in(watch_lines(ranks, now));
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], ContainsSubstring("2 of 3 ranks train, round 5..7"));
  CHECK_THAT(lines[1], ContainsSubstring("rank 2: stopped, in round 5"));
}

TEST_CASE("other sites stand below the ranks, on half of the lines at most") {
  std::vector<WatchedRank> ranks = {training(7), training(7)};
  take_status(ranks[0], "site oslo seen_s 90 delay_s 0.5 round 3 age 4", now);
  take_status(ranks[1], "site oslo seen_s 0.25 delay_s 0.0512 round 1450 age 20",
              now + std::chrono::seconds(1));  // rank 1 has taken the place of rank 0
  take_status(ranks[1], "site turin seen_s 12.5 round 1400 odd 7", now + std::chrono::seconds(1));
  CHECK(ranks[1].step == 7);
  const auto lines = lines_in(watch_table(ranks, {120, 24}, now));
  REQUIRE(lines.size() == 7);
  CHECK(lines[4] == "site                seen     delay     round    age");
  CHECK(lines[5] == "oslo               0.2 s     51 ms      1450     20");
  CHECK(lines[6] == "turin             12.5 s      - ms      1400      -");
  const auto said = lines_in(watch_lines(ranks, now));
  REQUIRE(said.size() == 3);
  CHECK(said[1] == "fastrun:   site oslo: seen 0.2 s ago, delay 51 ms, round 1450, age 20");
  // The rank that has heard them has said nothing for 9 s since.
  CHECK_THAT(watch_lines(ranks, now + std::chrono::seconds(10)),
             ContainsSubstring("site oslo: seen 9.2 s ago, delay 51 ms, round 1450, age 20"));
  CHECK_THAT(watch_lines(ranks, now + std::chrono::seconds(587)), ContainsSubstring("site turin"));
  const std::string later = watch_lines(ranks, now + std::chrono::seconds(589));
  CHECK_THAT(later, !ContainsSubstring("site turin") && ContainsSubstring("site oslo"));
  for (int k = 0; k < 30; ++k)
    take_status(ranks[1], "site s" + std::to_string(k) + " seen_s 0.1",
                now + std::chrono::hours(1));
  for (const std::size_t height : {5U, 8U, 10U, 24U, 80U})
    CHECK(lines_in(watch_table(ranks, {80, height}, now)).size() <= height - 1);
  const std::string small = watch_table(ranks, {80, 10}, now);
  CHECK_THAT(small, ContainsSubstring("site, 2 of 32") && ContainsSubstring("turin") &&
                        ContainsSubstring("oslo") && !ContainsSubstring("s17"));
}

TEST_CASE("what a program tells comes in any pieces") {
  using fast::mpi::LauncherNote;
  const std::string bytes = "bsstep 1\ntsstep 2 wait 0.5 bit\ni";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    RankReports reports;
    RankReports::Taken all = reports.take(std::string_view(bytes).substr(0, cut));
    const RankReports::Taken rest = reports.take(std::string_view(bytes).substr(cut));
    all.notes.insert(all.notes.end(), rest.notes.begin(), rest.notes.end());
    all.statuses.insert(all.statuses.end(), rest.statuses.begin(), rest.statuses.end());
    CHECK(all.notes == std::vector{LauncherNote::training_began, LauncherNote::took_seat,
                                   LauncherNote::lost_seat});
    CHECK(all.statuses == std::vector<std::string>{"step 1", "step 2 wait 0.5 bit"});
  }
}

TEST_CASE("a stopped process is found, also below a script") {
  const pid_t parent = fork();
  if (parent == 0) {
    setpgid(0, 0);
    execlp("sh", "sh", "-c", "sleep 60; true", nullptr);
    _exit(127);
  }
  setpgid(parent, parent);
  CHECK_FALSE(is_stopped(parent));
  const auto becomes = [&](bool stopped) {
    for (int k = 0; k < 500 && is_stopped(parent) != stopped; ++k) usleep(10'000);
    return is_stopped(parent) == stopped;
  };
  kill(-parent, SIGSTOP);
  CHECK(becomes(true));
  kill(-parent, SIGCONT);
  CHECK(becomes(false));
  kill(-parent, SIGKILL);
  waitpid(parent, nullptr, 0);
}
