#include "worker/round.hpp"

#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;
using worker::NeighborMemory;

namespace {

WorkerOptions with(algorithm::Rule rule) {
  WorkerOptions options;
  options.algorithm = std::move(rule);
  return options;
}

}  // namespace

TEST_CASE("a rule that remembers nobody stays in epoch 0, whoever leaves") {
  Scene scene(1, 3, stencil::ring(), with(algorithm::awc()));
  NeighborMemory memory(scene.context);
  const auto round = scene.plan.at(0);
  CHECK(memory.epoch_after({scene.arrival(0, 1), Scene::absent(2)}, *round) == 0);
}

TEST_CASE("an epoch begins when a neighbor leaves and when it comes back, and at no other time") {
  Scene scene(1, 3, stencil::ring(), with(algorithm::gradient_tracking()));
  NeighborMemory memory(scene.context);
  const auto round = scene.plan.at(0);
  const auto there = [&] { return std::vector{scene.arrival(0, 1), scene.arrival(2, 1)}; };
  CHECK(memory.epoch_after(there(), *round) == 0);
  CHECK(memory.epoch_after({scene.arrival(0, 1), Scene::absent(2)}, *round) == 1);
  CHECK(memory.epoch_after({scene.arrival(0, 1), Scene::absent(2)}, *round) == 0);  // known
  CHECK(memory.epoch_after(there(), *round) == 1);
}

TEST_CASE("an epoch begins when another rank is in a neighbor's place, absent before or not") {
  Scene scene(1, 3, stencil::ring(), with(algorithm::gradient_tracking()));
  NeighborMemory memory(scene.context);
  const auto round = scene.plan.at(0);
  const auto from = [&](int rank, Arrival::State state = Arrival::State::present) {
    Arrival arrival = scene.arrival(2, 1);
    arrival.rank = rank;
    arrival.state = state;
    return std::vector{scene.arrival(0, 1), arrival};
  };
  CHECK(memory.epoch_after(from(4), *round) == 0);  // whoever is met first
  CHECK(memory.epoch_after(from(5), *round) == 1);
  scene.mixer.restart(1);
  CHECK(memory.epoch_after(from(5), *round) == 1);
  CHECK(memory.epoch_after(from(6, Arrival::State::torn), *round) == 2);
}

TEST_CASE("a worker that is a source in one round and only a reader in another is the same") {
  for (const TopologyRule& rule :
       {schedule::exponential_ring(), schedule::one_peer_exponential()}) {
    Scene scene(1, 3, rule, with(algorithm::push_sum()));
    NeighborMemory memory(scene.context);
    for (std::int64_t number = 0; number < 12; ++number) {
      const auto round = scene.plan.at(number);
      std::vector<Arrival> arrivals;
      for (const int source : round->edges.sources) arrivals.push_back(scene.arrival(source, 1));
      CHECK(memory.epoch_after(arrivals, *round) == 0);
    }
  }
}

TEST_CASE("a worker that has missed messages begins a newer epoch than any of its neighbors") {
  Scene scene(1, 3, stencil::ring(), with(algorithm::gradient_tracking()));
  const auto round = scene.plan.at(0);
  const auto there = [&](double epoch) {
    return std::vector{scene.arrival(0, 1, epoch), scene.arrival(2, 1)};
  };
  NeighborMemory memory(scene.context);
  memory.leave_out_rounds();
  CHECK(memory.epoch_after({Scene::absent(0), Scene::absent(2)}, *round) == 1);
  scene.mixer.restart(1);
  CHECK(memory.epoch_after(there(4), *round) == 5);
  scene.mixer.restart(5);
  CHECK(memory.epoch_after(there(5), *round) == 5);  // once

  // Worker 0 was away, and has begun epoch 6, and sent, before its return was noticed here.
  CHECK(memory.epoch_after({Scene::absent(0), scene.arrival(2, 5)}, *round) == 6);
  scene.mixer.restart(6);
  CHECK(memory.epoch_after(there(6), *round) == 7);
}

TEST_CASE("a torn payload is no departure") {
  Scene scene(1, 3, stencil::ring(), with(algorithm::gradient_tracking()));
  NeighborMemory memory(scene.context);
  const auto torn = Scene::absent(2, Arrival::State::torn);
  CHECK(memory.epoch_after({scene.arrival(0, 1), torn}, *scene.plan.at(0)) == 0);
}

TEST_CASE("the newest epoch that a neighbor tells of is taken over; older messages are left out") {
  Scene scene(1, 3, stencil::ring(), with(algorithm::gradient_tracking()));
  NeighborMemory memory(scene.context);
  const auto round = scene.plan.at(0);
  const std::vector arrivals{scene.arrival(0, 1, 3), scene.arrival(2, 1, 5)};  // the label is last
  CHECK(memory.epoch_after(arrivals, *round) == 5);
  scene.mixer.restart(5);
  const combine::Neighborhood near = memory.neighborhood(arrivals, *round);
  CHECK(near.workers == std::vector<int>{2});
  CHECK(near.weights == std::vector<double>{round->row.weights[1]});
}

TEST_CASE("absent neighbors have no part in a neighborhood") {
  Scene scene(1, 3, stencil::ring(), with(algorithm::awc()));
  const NeighborMemory memory(scene.context);
  const auto near = memory.neighborhood({Scene::absent(0), scene.arrival(2, 1)}, *scene.plan.at(0));
  CHECK(near.workers == std::vector<int>{2});
  CHECK(near.self_weight == scene.plan.at(0)->row.self);
}

TEST_CASE("the share of a reader that is gone stays with the worker that would have given it") {
  // 0 → 1 → 2 → 0: worker 1 reads 0 and gives to 2, which it does not read.
  Scene scene(1, 3, stencil::ring(true), with(algorithm::push_sum()));
  NeighborMemory memory(scene.context);
  const auto round = scene.plan.at(0);
  const std::vector arrivals{scene.arrival(round->edges.sources.at(0), 1)};
  scene.exchange.gone = round->edges.destinations;
  const double epoch = memory.epoch_after(arrivals, *round);
  CHECK(epoch == 1);
  scene.mixer.restart(0);
  const auto near = memory.neighborhood(arrivals, *round);
  CHECK(near.self_weight == Approx(1));  // its own share and its reader's: columns sum to 1
}
