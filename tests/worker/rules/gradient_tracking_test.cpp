// gradient_tracking alone, in exchanges of which some are missed. Whatever is missed, the trackers
// sum to the steps, so that all workers end at the optimum of all.
#include <fast/algorithm/rules.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <cmath>
#include <functional>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using algorithm::Block;
using algorithm::Sweep;

namespace {

constexpr double rate = 0.05;

struct Tracker {
  std::shared_ptr<algorithm::Algorithm> rule = algorithm::gradient_tracking().make();
  double x = 1, state[2] = {}, payload[2] = {}, message[2] = {}, error[2] = {};

  Block<double> block() {
    Block<double> block;
    block.count = 1;
    block.current = &x;
    for (int k = 0; k < 2; ++k) {
      block.state[k] = &state[k];
      block.own[k] = &payload[k];
      block.message[k] = &message[k];
      block.payload[k] = &payload[k];
    }
    return block;
  }
  /// Rounds the payload to multiples of `grain`, with what the message before has lost.
  void send(double grain) {
    for (int k = 0; k < 2; ++k) {
      const double value = payload[k] + error[k];
      message[k] = grain == 0 ? value : grain * std::round(value / grain);
      error[k] = value - message[k];
    }
  }
};

class Exchanges {
 public:
  /// Whether `reader` takes the message of `source`.
  using Takes = std::function<bool(int reader, int source)>;

  explicit Exchanges(Schedule schedule, double grain = 0)
      : schedule_(std::move(schedule)),
        trackers_(static_cast<std::size_t>(schedule_.workers())),
        grain_(grain) {
    for (Tracker& worker : trackers_) worker.rule->apply(Sweep::start, worker.block());
  }

  void rounds(int count, const Takes& takes) {
    for (int t = 0; t < count; ++t) round(takes);
  }
  void round(const Takes& takes) {
    for (int i = 0; i < size(); ++i) {
      Tracker& worker = of(i);
      worker.x += rate * (i - worker.x);
      worker.rule->begin_publish({}, {});
      worker.rule->apply(Sweep::publish, worker.block());
      worker.send(grain_);
    }
    const std::vector<Tracker> sent = trackers_;
    for (int i = 0; i < size(); ++i) combine(i, sent, takes);
    ++round_;
  }
  double x(int i) const { return trackers_[static_cast<std::size_t>(i)].x; }
  double mean() const {
    double sum = 0;
    for (const Tracker& worker : trackers_) sum += worker.x;
    return sum / size();
  }
  /// From the optimum of all.
  double furthest() const {
    double furthest = 0;
    for (const Tracker& worker : trackers_)
      furthest = std::max(furthest, std::abs(worker.x - (size() - 1) / 2.0));
    return furthest;
  }

 private:
  int size() const { return static_cast<int>(trackers_.size()); }
  Tracker& of(int i) { return trackers_[static_cast<std::size_t>(i)]; }

  void combine(int i, const std::vector<Tracker>& sent, const Takes& takes) {
    const Topology topology = schedule_.at(round_);
    const MixingRow row = mixing_row(topology, i, WeightRule::automatic, false);
    Block<double> block = of(i).block();
    block.info.workers = size();
    block.info.self_weight = row.self;
    double pull[2] = {};
    for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
      const int source = row.neighbors[k];
      if (!takes(i, source)) continue;
      block.info.neighbor_weight += row.weights[k];
      for (int v = 0; v < 2; ++v)
        pull[v] += row.weights[k] * (sent[static_cast<std::size_t>(source)].message[v] -
                                     sent[static_cast<std::size_t>(i)].message[v]);
    }
    for (int reader = 0; reader < size(); ++reader) {
      if (reader == i || takes(reader, i)) continue;
      const MixingRow other = mixing_row(topology, reader, WeightRule::automatic, false);
      for (std::size_t k = 0; k < other.neighbors.size(); ++k) {
        if (other.neighbors[k] == i) block.info.self_weight += other.weights[k];
      }
    }
    block.pull[0] = &pull[0];
    block.pull[1] = &pull[1];
    of(i).rule->begin_combine(block.info, {}, {});
    of(i).rule->apply(Sweep::combine, block);
  }

  Schedule schedule_;
  std::vector<Tracker> trackers_;
  double grain_;  ///< of the code; 0: messages are exact
  std::int64_t round_ = 0;
};

bool everything(int, int) { return true; }

}  // namespace

TEST_CASE("gradient_tracking ends at the optimum when readers have missed messages at random") {
  const std::uint64_t seed = test_seed(77);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (const TopologyRule& rule : {stencil::ring(true), stencil::exponential(), stencil::ring()}) {
    Exchanges run(rule.make(5));
    for (int t = 0; t < 300; ++t) {
      const std::uint64_t taken = rng();
      run.round([&](int reader, int source) { return (taken >> (5 * reader + source) & 1) != 0; });
    }
    run.rounds(2000, everything);
    INFO(rule.name());
    CHECK(run.furthest() < 1e-9);
  }
}

// Coded weights agree up to the code. Their mean moves by the mean tracker, which is the mean step.
TEST_CASE(
    "coded gradient_tracking ends with the mean at the optimum, whatever readers have missed") {
  const std::uint64_t seed = test_seed(78);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  constexpr double grain = 1.0 / 64;
  for (const TopologyRule& rule : {stencil::ring(), stencil::complete(), stencil::ring(true)}) {
    Exchanges run(rule.make(5), grain);
    for (int t = 0; t < 100; ++t) {
      const std::uint64_t taken = rng();
      run.round([&](int reader, int source) { return (taken >> (5 * reader + source) & 1) != 0; });
    }
    run.rounds(2000, everything);
    INFO(rule.name());
    CHECK(run.mean() == Approx(2).margin(1e-9));
    CHECK(run.furthest() < 32 * grain);  // alone, workers are 2 apart from it
  }
}

TEST_CASE("gradient_tracking ends at the optimum after a worker that only gave was on its own") {
  for (const int missed : {1, 4, 5, 6, 7, 30, 300}) {
    Exchanges run(stencil::ring(true).make(4));
    run.rounds(50, everything);
    run.rounds(missed, [](int reader, int) { return reader != 0; });
    run.rounds(2000, everything);
    INFO(missed << " combinations");
    CHECK(run.furthest() < 1e-9);
  }
}

TEST_CASE("a worker that only gives goes to its own optimum, with gradient_tracking") {
  Exchanges run(stencil::ring(true).make(3));
  run.rounds(2000, [](int reader, int) { return reader != 0; });
  CHECK(run.x(0) == Approx(0).margin(1e-9));
}

TEST_CASE("gradient_tracking on matchings that leave a worker idle ends at the optimum") {
  for (const int workers : {3, 5}) {
    Exchanges run(schedule::random_matchings().make(workers));
    run.rounds(6000, everything);
    INFO(workers << " workers");
    CHECK(run.furthest() < 1e-6);
  }
}
