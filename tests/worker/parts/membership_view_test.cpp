#include "worker/membership_view.hpp"

#include <fast/exchange/local.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <thread>

#include "exchange/open_coordinator.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/reported.hpp"

using namespace fast;
using testing::Scene;
using worker::MembershipView;

namespace {

using Workers = std::vector<int>;

WorkerOptions with_deadline() {
  WorkerOptions options;
  options.deadline = Seconds(60);
  return options;
}

struct Run : Scene {
  explicit Run(int rank, int size)
      : Scene(rank, size, stencil::ring(), with_deadline()), survivors(setting, peers, plan) {
    peers->patience = Seconds(0.1);
  }
  void all(WorkerStatus status) const {
    for (PeerState& state : peers->states) state.status = status;
  }
  MembershipView survivors;
};

/// Three workers of a host and a spare of another one, as threads.
struct SpareElsewhere final : testing::Reported {
  using Reported::Reported;
  std::vector<int> hosts() const override { return {0, 0, 0, 3}; }
};

struct AskedPeers final : testing::FakePeers {
  using FakePeers::FakePeers;
  PeerState peer(int worker) const override {
    asked.push_back(worker);
    return FakePeers::peer(worker);
  }
  mutable Workers asked;
};

/// Looks until somebody was asked after, and then until that seat is another rank's.
void look_until_replaced(const Group& group, std::atomic<bool>& reports) {
  Scene scene(0, 3, stencil::ring());
  scene.setting.group = group;
  scene.setting.members = exchange::members_of(group);
  const auto peers = std::make_shared<AskedPeers>(3);
  MembershipView survivors(scene.setting, peers, scene.plan);
  survivors.look();
  testing::expect(peers->asked == Workers{1, 2}, "not all of this host are looked at");
  reports = true;
  const Deadline deadline(Seconds(30));
  while (group.replaced().empty() && !deadline.expired()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  peers->asked.clear();
  survivors.look();
  testing::expect(peers->asked == Workers{2}, "a rank of another host is looked at");
}

}  // namespace

TEST_CASE("a seat that a spare of another host has taken is not looked at any more") {
  std::atomic<bool> reports{false};
  const auto died = [&] { return reports ? Workers{1} : Workers{}; };
  local::run(4, [&](const Group& threads) {
    const Group group =
        with_spares(GroupImpl::group(std::make_shared<SpareElsewhere>(threads, died)), 1);
    const auto members = exchange::members_of(group);
    members->watch(Seconds(30), 1, 1);
    if (threads.rank() == 3) {
      const auto offer = members->wait_for_seat([] {});
      testing::expect(offer && offer->seat == 1, "no seat is offered");
      members->map().records().set_status(WorkerStatus::running);
      testing::expect(members->take(), "the seat is not vacant any more");
    } else {
      members->map().records().set_status(WorkerStatus::running);
    }
    if (threads.rank() == 0) look_until_replaced(group, reports);
    threads.barrier(Deadline(Seconds(30)), "the end");
  });
}

TEST_CASE("the end waits for all, and all are its part") {
  Run run(0, 4);
  run.all(WorkerStatus::finished);
  run.survivors.await_finish();
  CHECK(run.survivors.departed({}).lost.empty());
  CHECK(run.survivors.own_part(true) == Workers{0, 1, 2, 3});
}

TEST_CASE("a worker that failed ends the wait") {
  Run run(0, 3);
  run.all(WorkerStatus::finished);
  run.peers->states[2].status = WorkerStatus::failed;
  CHECK_THROWS_WITH(run.survivors.await_finish(), ContainsSubstring("because worker 2 failed"));
}

TEST_CASE("a suspect is lost once its time has passed on this worker's own heart") {
  Run run(0, 4);
  run.all(WorkerStatus::finished);
  run.peers->states[2].status = WorkerStatus::running;
  run.peers->suspects = {2};
  std::jthread heart([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::atomic_ref(run.peers->states[0].heartbeat).fetch_add(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  run.survivors.await_finish();
  heart.request_stop();
  heart.join();
  CHECK(run.survivors.departed({}).lost == Workers{2});
}

TEST_CASE("deaths that cut the topology leave a worker those that it still reaches") {
  Run run(0, 6);
  run.peers->suspects = {2, 5};  // a ring of 6: 0-1 and 3-4 remain
  run.survivors.look();
  CHECK(run.survivors.departed({}).lost == Workers{2, 5});
  REQUIRE(run.said.size() == 1);
  CHECK(run.said[0].find("falls into 2 parts") != std::string::npos);
  CHECK(run.survivors.own_part(false).size() == 6);  // in training all count
  CHECK(run.survivors.own_part(true) == Workers{0, 1});
}

TEST_CASE("the lowest worker of a part warns, no other") {
  Run run(1, 6);
  run.peers->suspects = {2, 5};
  run.survivors.look();
  CHECK(run.said.empty());
}
