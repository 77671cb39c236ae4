#include "membership/liveness.hpp"

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;

namespace {

struct Watched {
  void beat(int rank) { memory.board(rank).count(word::beat); }
  testing::Records memory{4};
  Liveness liveness{memory.board(0), word::beat};
};

}  // namespace

TEST_CASE("a rank whose beat stands still is silent, and comes back with the next beat") {
  Watched run;
  run.liveness.look(0.9);
  CHECK_FALSE(run.liveness.is_silent(1, 1));
  run.beat(2);
  run.liveness.look(0.2);
  CHECK(run.liveness.is_silent(1, 1));
  CHECK_FALSE(run.liveness.is_silent(1, 2));  // each protocol has its own time
  CHECK_FALSE(run.liveness.is_silent(2, 1));
  CHECK_FALSE(run.liveness.is_silent(0, 1));  // itself
  run.beat(1);
  run.liveness.look_again();
  CHECK_FALSE(run.liveness.is_silent(1, 1));
  CHECK(run.liveness.time_s() == Approx(1.1));
}

TEST_CASE(
    "deaths that the launcher reports count at once, also when the table is looked at again") {
  Watched run;
  run.liveness.look(0.1, {2});
  CHECK(run.liveness.has_died(2));
  CHECK_FALSE(run.liveness.has_died(1));
  run.liveness.look_again();
  CHECK(run.liveness.has_died(2));
}

TEST_CASE("a coordinator's protocols see the same table, and the end of one does not stop others") {
  struct Counts final : Protocol {
    void advance() override { ++count; }
    bool is_busy() const override { return busy; }
    int count = 0;
    bool busy = false;
  } first, second;
  testing::Records memory(2);
  std::vector<int> died;
  const auto coordinator = memory.coordinator(0, [&] { return died; });
  coordinator->add(first);
  coordinator->add(second);
  CHECK_FALSE(coordinator->tick(Seconds(0.1)));
  CHECK(memory.board(0).own(word::beat) == 1);
  second.busy = true;
  died = {1};
  CHECK(coordinator->tick(Seconds(0.1)));
  CHECK(coordinator->liveness().has_died(1));
  coordinator->remove(second);
  CHECK_FALSE(coordinator->tick(Seconds(0.1)));
  CHECK(first.count == 3);
  CHECK(second.count == 2);
  CHECK(coordinator->claim_for_run());
  CHECK_FALSE(coordinator->claim_for_run());
}
