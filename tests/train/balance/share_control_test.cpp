#include "train/balance/share_control.hpp"

#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>

#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::train;

namespace {

constexpr std::size_t batch_size = 14;

ShareControl::Options control_options(Seconds deadline = Seconds(30)) {
  return {.batch_size = batch_size, .silent_after = Seconds(20), .deadline = deadline};
}

}  // namespace

TEST_CASE("workers that say how fast they are get shares of that speed, all the same") {
  for (const int workers : {3, 5}) {
    const std::vector<double> seconds{1, 2, 4, 2, 1};
    std::vector<double> speeds;
    for (int w = 0; w < workers; ++w) speeds.push_back(1 / seconds[static_cast<std::size_t>(w)]);
    const Shares right = Shares::in_proportion(speeds, batch_size);
    std::vector<std::optional<Shares>> got(static_cast<std::size_t>(workers));
    local::run(workers, [&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      ShareControl control(group, Shares::even(workers, batch_size), control_options());
      CHECK_FALSE(control.begin_epoch(0));
      CHECK_FALSE(control.has_measured());
      control.measured(0, seconds[rank]);
      CHECK(control.has_measured());
      got[rank] = control.begin_epoch(1);
      CHECK_FALSE(control.has_measured());
      control.measured(1, seconds[rank]);
      CHECK(control.begin_epoch(2) == right);  // they are as before
      control.end(ShareRecords::Stage::done);
    });
    for (const auto& each : got) CHECK(each == right);
  }
}

TEST_CASE("no worker waits for one that has left, or after one that has made its last epoch") {
  local::run(3, [&](const Group& group) {
    ShareControl control(group, Shares::even(3, batch_size), control_options());
    if (group.rank() == 0) return control.end(ShareRecords::Stage::left);
    control.measured(0, 1);
    const auto shares = control.begin_epoch(1);
    REQUIRE(shares);
    CHECK(shares->batches() == std::vector<std::size_t>{0, 21, 20});
    if (group.rank() == 1) return control.end(ShareRecords::Stage::done);
    control.measured(1, 1);
    CHECK_FALSE(control.begin_epoch(2));
  });
}

TEST_CASE("a worker that never measures is an error at the deadline") {
  const auto wait = [&](const Group& group) {
    ShareControl control(group, Shares::even(2, batch_size), control_options(Seconds(0.2)));
    if (group.rank() == 1) {
      control.measured(0, 1);
      CHECK_THROWS_WITH(control.begin_epoch(1), ContainsSubstring("before epoch 2"));
    }
    group.barrier(Deadline(Seconds(30)), "both have ended");
  };
  local::run(2, wait);
}

TEST_CASE("the deadline begins again with each round of another worker") {
  constexpr Seconds deadline(2);
  const auto wait = [&](const Group& group) {
    ShareControl control(group, Shares::even(2, batch_size), control_options(deadline));
    if (group.rank() == 1) {
      control.measured(0, 1);
      const auto began = std::chrono::steady_clock::now();
      CHECK(control.begin_epoch(1));
      CHECK(std::chrono::steady_clock::now() - began > deadline);
    } else {  // a slow worker
      for (const Deadline slow(2 * deadline); !slow.expired();) {
        control.count_round();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      control.measured(0, 1);
      CHECK(control.begin_epoch(1));
    }
    group.barrier(Deadline(Seconds(30)), "both have shares");
  };
  local::run(2, wait);
}
