// Runs of rules in which workers are lost, spares take their seats, and workers join, as threads.
// Each round is written down, so that tests can hold it against the rule.
#pragma once

#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exchange/open_coordinator.hpp"
#include "support/golden.hpp"
#include "worker/placed.hpp"
#include "worker/quick.hpp"
#include "worker/reported.hpp"

namespace fast::testing {

using Vector = std::vector<double>;

inline constexpr double crossing_rate = 0.05;  ///< of the steps
inline constexpr std::size_t crossing_elements = 24;

struct CrossingRun {
  std::string rule;
  algorithm::Parameters parameters{};
  std::string codec = "identity";
  TopologyRule topology = stencil::complete();
  int workers = 4;
  std::int64_t dies_in = 0;         ///< in which round worker 1 dies; a spare follows it; 0: none
  std::int64_t asks_in = 0;         ///< in which round one more worker is asked for; 0: none
  std::int64_t rounds_after = 600;  ///< the last of both
  std::int64_t spoiled_in = 0;      ///< in which round worker 0's step makes a NaN; 0: none
  std::uint64_t seed = 1;           ///< of the targets
  Place place = Place::host;

  std::string text() const {
    std::string text =
        fmt::format("{} {} on {} of {}, {}, dies in {}, asks in {}, spoiled in {}", rule, codec,
                    topology.name(), workers, testing::name(place), dies_in, asks_in, spoiled_in);
    for (const auto& [key, value] : parameters) text += fmt::format(" {}={}", key, value);
    return text;
  }
  int all() const { return workers + (asks_in > 0 ? 1 : 0); }
  int spares() const { return (dies_in > 0 ? 1 : 0) + (asks_in > 0 ? 1 : 0); }
};

/// Where the worker on that seat would go by itself.
inline double crossing_target(const CrossingRun& run, int seat, std::size_t element) {
  Rng rng(mix_seed(run.seed, static_cast<std::uint64_t>(seat), element));
  return 3 * rng.normal() + (seat >= run.workers ? 10 : 0);
}

inline double crossing_optimum(const CrossingRun& run, std::size_t element) {
  double sum = 0;
  for (int seat = 0; seat < run.all(); ++seat) sum += crossing_target(run, seat, element);
  return sum / run.all();
}

/// What a worker holds between two rounds.
struct Held {
  Vector x;
  std::array<Vector, 4> state;  ///< of the rule; empty where it has fewer
  double epoch = 0, exchanges = 0;
  std::array<double, 2> resynchronization{};
  std::int64_t combinations = 0, skipped = 0;
  int size = 0;
};

inline Held held_by(Worker& worker, const Vector& x) {
  Held held;
  held.x = x;
  std::array<std::int64_t, 3> counters{};
  for (const TensorView& view : worker.state()) {
    const auto take = [&](void* to, std::size_t bytes) { std::memcpy(to, view.data, bytes); };
    if (view.name == "worker.counters") take(counters.data(), sizeof counters);
    if (view.name == "mixer.epoch") take(&held.epoch, sizeof held.epoch);
    if (view.name == "gasloc.exchanges") take(&held.exchanges, sizeof held.exchanges);
    if (view.name == "resynchronization")
      take(held.resynchronization.data(), sizeof held.resynchronization);
    for (std::size_t s = 0; s < held.state.size(); ++s) {
      if (view.name != fmt::format("mixer.state.{}", s)) continue;
      held.state[s].resize(x.size());
      take(held.state[s].data(), x.size() * sizeof(double));
    }
  }
  held.combinations = counters[1];
  held.skipped = worker.stats().skipped;
  held.size = worker.size();
  return held;
}

/// One round of the worker on a seat.
struct CrossingRound {
  Held before, after;
  Vector stepped;  ///< the weights after the step
  bool jumped = false;
  bool is_new = false;  ///< others may have read what the worker before has left
};

/// By round, then by seat.
using CrossingLog = std::map<std::int64_t, std::map<int, CrossingRound>>;

struct CrossingEnd {
  CrossingLog log;
  std::map<int, Vector> ends;  ///< by seat
};

namespace crossing {

struct Shared {
  CrossingEnd end;
  std::mutex mutex;
  std::atomic<bool> reports{false};
  std::atomic<std::int64_t> grown_in{0};
};

inline std::int64_t last_round(const CrossingRun& run, const Shared& shared) {
  constexpr std::int64_t most = 30'000;
  if (run.asks_in == 0) return run.dies_in + run.rounds_after;
  const std::int64_t grown_in = shared.grown_in;
  return grown_in == 0 ? most : std::max(grown_in, run.dies_in) + run.rounds_after;
}

/// `joined`: the combination with which a spare begins, or -1.
inline void make_round(const CrossingRun& run, Worker& worker, Vector& x, std::int64_t joined,
                       Shared& shared) {
  const std::int64_t round = worker.round();
  CrossingRound made;
  made.before = held_by(worker, x);
  made.is_new = made.before.combinations == joined;
  const int seat = worker.rank();
  worker.step(
      [&] {
        // While workers agree on a growth, about half a second passes.
        if (run.asks_in > 0 && shared.grown_in == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(500));
        for (std::size_t e = 0; e < x.size(); ++e)
          x[e] += crossing_rate * (crossing_target(run, seat, e) - x[e]);
        if (seat == 0 && run.spoiled_in > 0 && round == run.spoiled_in)
          x[5] = std::numeric_limits<double>::quiet_NaN();
        made.stepped = x;
      },
      {.learning_rate = crossing_rate});
  made.after = held_by(worker, x);
  made.jumped = worker.round() != round + 1;
  if (made.before.size < run.all() && made.after.size == run.all())
    shared.grown_in = worker.round();
  const std::lock_guard lock(shared.mutex);
  shared.end.log[round][seat] = std::move(made);
}

inline void work(const CrossingRun& run, const Group& threads, Shared& shared) {
  constexpr int dying = 1;
  const Group reported = testing::reported(threads, dying, shared.reports);
  const Group group = run.spares() > 0 ? with_spares(reported, run.spares()) : reported;
  Vector x(crossing_elements, 1.0);
  WorkerOptions options = quick();
  options.algorithm = algorithm::by_name(run.rule, run.parameters);
  options.codec = codec::by_name(run.codec);
  options.suspect_after = Seconds(30);
  if (run.spoiled_in > 0) options.not_finite = NotFinite::heal;
  const TensorView view = placed(view_of("x", std::span(x)), run.place, options);
  Worker worker(group, run.topology, {view}, options);
  worker.allow_growth();
  const bool dies = threads.rank() == dying && run.dies_in > 0;
  const bool joins = group.has_seat() && worker.stats().joined_at > 0;
  const std::int64_t joined = joins ? held_by(worker, x).combinations : -1;
  while (worker.round() < (dies ? run.dies_in : last_round(run, shared))) {
    if (run.asks_in > 0 && threads.rank() == 0 && worker.round() == run.asks_in)
      exchange::members_of(group)->growth().request();
    make_round(run, worker, x, joined, shared);
  }
  if (dies) {
    shared.reports = true;
    const Deadline deadline(Seconds(30));
    while (group.has_seat() && !deadline.expired()) std::this_thread::yield();
    worker.step([] {}, {.learning_rate = crossing_rate});
  }
  worker.await_finish();
  const std::lock_guard lock(shared.mutex);
  if (group.has_seat()) shared.end.ends[worker.rank()] = x;
}

}  // namespace crossing

inline CrossingEnd made(const CrossingRun& run) {
  crossing::Shared shared;
  local::run(run.workers + run.spares(),
             [&](const Group& threads) { crossing::work(run, threads, shared); });
  return std::move(shared.end);
}

/// All seats made this round together, with the same topology and in the same epoch.
inline bool is_common(const std::map<int, CrossingRound>& round) {
  const CrossingRound& first = round.begin()->second;
  if (static_cast<int>(round.size()) != first.before.size) return false;
  for (const auto& [seat, one] : round) {
    const bool alone = one.jumped || one.is_new || one.after.skipped != one.before.skipped;
    const bool restarts =
        one.before.epoch != one.after.epoch || one.before.epoch != first.before.epoch;
    const bool elsewhere = one.before.combinations != first.before.combinations ||
                           one.before.size != first.before.size ||
                           one.before.resynchronization != first.before.resynchronization;
    if (alone || restarts || elsewhere) return false;
  }
  return true;
}

}  // namespace fast::testing
