#include "train/control/run_control.hpp"

#include <fast/exchange/local.hpp>
#include <fast/exchange/spares.hpp>

#include <mutex>
#include <stdexcept>
#include <vector>

#include "exchange/group_impl.hpp"
#include "exchange/seats/seat_keeper.hpp"
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

TEST_CASE("a spare that leaves its seat before it begins is absent at once") {
  local::run(3, [](const Group& threads) {
    const Group group = with_spares(threads, 1);
    const bool joins = !group.has_seat();
    RunControl control(group, options());
    const auto seats = GroupImpl::of(group).seats();
    const auto meet = [&] { threads.barrier(Deadline(Seconds(30)), "meeting"); };
    if (!joins) seats->note_status(WorkerStatus::running);
    if (group.rank() == 0) seats->growth().request();
    if (joins && !(seats->wait_for_seat([] {}) && seats->take()))
      throw std::runtime_error("the spare has no seat");
    meet();
    seats->growth().enter(1);
    if (!control.absent().empty()) throw std::runtime_error("a worker is absent");
    meet();
    if (joins) seats->release();
    meet();
    if (control.absent() != std::vector<int>{2})
      throw std::runtime_error("the spare that has left is waited for");
    meet();  // nobody ends before
  });
}
