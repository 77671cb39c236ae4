#include "train/control/run_control.hpp"

#include <fast/exchange/local.hpp>

#include <mutex>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::train;

namespace {

RunControl::Options options() {
  RunControl::Options options;
  options.deadline = Seconds(30);
  return options;
}

}  // namespace

TEST_CASE("at the end, all workers know whom one of them has lost") {
  std::mutex mutex;
  std::vector<std::vector<int>> known;
  const Deadline limit(Seconds(20));
  local::run(3, [&](const Group& group) {
    RunControl control(group, options());
    control.end(Stage::done, 10);
    control.conclude(group.rank() == 0 ? std::vector<int>{2} : std::vector<int>{});
    const std::lock_guard lock(mutex);
    known.push_back(control.given_up());
  });
  CHECK(known == std::vector<std::vector<int>>(3, {2}));
  CHECK_FALSE(limit.expired());
}

TEST_CASE("a worker that could not save is named by all") {
  local::run(2, [](const Group& group) {
    RunControl control(group, options());
    control.end(Stage::done, 10);
    control.conclude({});
    const auto unsaved = control.report(group.rank() == 0);
    if (unsaved != 1) throw std::runtime_error("not worker 1");
  });
}
