// The end of a run among threads.

#include <fast/exchange/local.hpp>
#include <fast/exchange/spares.hpp>

#include <mutex>
#include <stdexcept>
#include <vector>

#include "exchange/open_coordinator.hpp"
#include "membership/run_agreement.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;

namespace {

/// Collective. As a Trainer opens it.
struct EndingRun {
  explicit EndingRun(const Group& group)
      : coordinator(exchange::coordinator_of_run(group, record_format(), Deadline(Seconds(30)))),
        agreement(coordinator, exchange::rank_map_of(group, coordinator),
                  {.deadline = Seconds(30), .stop_requested = {}}) {}
  std::shared_ptr<Coordinator> coordinator;
  RunAgreement agreement;
};

}  // namespace

TEST_CASE("at the end, all workers know whom one of them has lost") {
  std::mutex mutex;
  std::vector<std::vector<int>> known;
  const Deadline limit(Seconds(20));
  local::run(3, [&](const Group& group) {
    EndingRun run(group);
    run.agreement.end(Stage::done, 10);
    run.agreement.conclude(group.rank() == 0 ? std::vector<int>{2} : std::vector<int>{});
    const std::lock_guard lock(mutex);
    known.push_back(run.agreement.given_up());
  });
  CHECK(known == std::vector<std::vector<int>>(3, {2}));
  CHECK_FALSE(limit.expired());
}

TEST_CASE("a worker that could not save is named by all") {
  local::run(2, [](const Group& group) {
    EndingRun run(group);
    run.agreement.end(Stage::done, 10);
    run.agreement.conclude({});
    const auto unsaved = run.agreement.report(group.rank() == 0);
    if (unsaved != 1) throw std::runtime_error("not worker 1");
  });
}

TEST_CASE("a spare that leaves its seat before it begins is absent at once") {
  local::run(3, [](const Group& threads) {
    const Group group = with_spares(threads, 1);
    const bool joins = !group.has_seat();
    EndingRun run(group);
    const auto members = exchange::members_of(group);
    const auto meet = [&] { threads.barrier(Deadline(Seconds(30)), "meeting"); };
    if (!joins) members->map().records().set_status(WorkerStatus::running);
    if (group.rank() == 0) members->growth().request();
    if (joins && !(members->wait_for_seat([] {}) && members->take()))
      throw std::runtime_error("the spare has no seat");
    meet();
    members->map().enter(1);
    if (!run.agreement.absent().empty()) throw std::runtime_error("a worker is absent");
    meet();
    if (joins) members->release();
    meet();
    if (run.agreement.absent() != std::vector<int>{2})
      throw std::runtime_error("the spare that has left is waited for");
    meet();  // nobody ends before
  });
}

TEST_CASE("each run of a group has records of its own, also with spares") {
  local::run(3, [](const Group& threads) {
    const Group group = with_spares(threads, 1);
    for (int k = 0; k < 2; ++k) {
      EndingRun run(group);
      const bool shares = run.coordinator == exchange::members_of(group)->coordinator();
      if (shares != (k == 0)) throw std::runtime_error("the seats' records serve one run");
      if (run.agreement.is_open() || !run.agreement.left().empty())
        throw std::runtime_error("a run begins with what another one has left");
      threads.barrier(Deadline(Seconds(30)), "the beginning of a run");
      run.agreement.request(Request::stop);
      run.agreement.end(Stage::left, 5);
      threads.barrier(Deadline(Seconds(30)), "the end of a run");
    }
  });
}
