// Workers with spares, as threads. A death is what the launcher reports of it.
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <fast/worker/worker.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

#include "exchange/open_coordinator.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/rules.hpp"
#include "support/seed.hpp"
#include "worker/placed.hpp"
#include "worker/quick.hpp"
#include "worker/reported.hpp"

using namespace fast;
using testing::expect;
using testing::Place;

namespace {

constexpr int lost_worker = 1;

double target(int seat) { return seat == lost_worker ? 30.0 : 2.0 * seat; }

struct Run {
  std::string rule;
  std::int64_t staleness = 0;
  int workers = 4;
  int spares = 1;
  bool first_fails = false;  ///< the first spare throws some rounds after it has taken the seat
  algorithm::Parameters parameters{};
  std::string codec = "identity";
  TopologyRule topology = stencil::ring();
  int dies_in = 50;
  Place place = Place::host;

  /// The host takes long to play devices.
  int rounds() const { return place == Place::host ? 800 : 300; }
  std::string text() const {
    std::string text =
        fmt::format("{} {} on {} of {} at staleness {}, round {}, {}", rule, codec, topology.name(),
                    workers, staleness, dies_in, testing::name(place));
    for (const auto& [key, value] : parameters) text += fmt::format(" {}={}", key, value);
    return text;
  }
};

/// Rules with local steps, and those that send a part of the entries.
Run drawn_run(Rng& rng) {
  const auto below = [&](int count) {
    return static_cast<int>(rng.below(static_cast<std::uint64_t>(count)));
  };
  const int period = 2 + below(4);
  const algorithm::Parameters delayed{{"period", std::to_string(period)},
                                      {"delay", std::to_string(below(1 + period / 2))}};
  Run run;
  run.workers = 3 + below(3);
  run.dies_in = 40 + below(20);
  const int kind = below(6);
  if (kind < 4) run.parameters = delayed;
  if (kind < 3) run.topology = below(2) == 0 ? stencil::ring() : stencil::complete();
  if (kind < 2) run.rule = "gasloc";
  if (kind == 0) run.parameters.insert({{"changes", "true"}, {"consensus_step", "0.6"}});
  if (kind == 0) run.codec = below(2) == 0 ? "identity" : "int8";
  if (kind == 2) run.rule = "diloco";
  if (kind == 2) run.topology = stencil::complete();
  if (kind == 3) run.rule = "noloco";
  if (kind == 3) run.topology = schedule::random_matchings();
  if (kind == 2 || kind == 3) run.parameters.insert({{"momentum", "0.4"}});
  if (kind == 4) run.rule = "sparta";
  if (kind == 4) run.parameters = {{"fraction", "0.4"}};
  if (kind == 4) run.codec = below(2) == 0 ? "bf16" : "fp16";
  if (kind == 5) run.rule = "choco";
  if (kind == 5) run.parameters = {{"fraction", "0.4"}, {"consensus_step", "0.3"}};
  return run;
}

struct End {
  double sum = 0;
  int seats = 0, without = 0;
};

/// Of a spare.
void fail_later(Worker& worker, std::atomic<bool>& has_failed) {
  const auto step = [&](int round) {
    if (round < 20) return;
    has_failed = true;
    throw std::runtime_error("the disk is full");
  };
  try {
    for (int round = 0; worker.round() < Run{}.rounds(); ++round)
      worker.step([&] { step(round); }, {.learning_rate = 0.02});
    expect(false, "the spare was not needed");
  } catch (const std::runtime_error& error) {
    expect(error.what() == std::string("the disk is full"), error.what());
  }
}

/// Gradient descent on the parabolas of all seats. In round `dies_in`, worker 1 is reported dead.
End train(const Run& run) {
  End end;
  std::mutex mutex;
  std::atomic<bool> reports{false}, has_failed{false}, has_followed{false};
  // After a spare has failed, nobody ends a step before the next spare has the seat: how many
  // rounds all go together does not depend on who is faster.
  const auto await_next_spare = [&](const Group& threads) {
    if (threads.rank() == run.workers + 1) has_followed = true;
    const Deadline deadline(Seconds(30));
    while (has_failed && !has_followed && !deadline.expired()) std::this_thread::yield();
  };
  local::run(run.workers + run.spares, [&](const Group& threads) {
    const Group group = with_spares(testing::reported(threads, lost_worker, reports), run.spares);
    std::vector<double> x(5, 1.0);
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name(run.rule, run.parameters);
    options.codec = codec::by_name(run.codec);
    options.staleness = run.staleness;
    const TensorView view = testing::placed(view_of("x", std::span(x)), run.place, options);
    Worker worker(group, run.topology, {view}, options);
    const bool is_lost = threads.rank() == lost_worker;
    if (run.first_fails && threads.rank() == run.workers) return fail_later(worker, has_failed);
    while (worker.round() < (is_lost ? run.dies_in : run.rounds())) {
      worker.step(
          [&] {
            if (run.first_fails) await_next_spare(threads);
            for (double& value : x) value += 0.02 * (target(worker.rank()) - value);
          },
          {.learning_rate = 0.02});
    }
    if (is_lost) {
      reports = true;
      while (group.has_seat()) std::this_thread::yield();  // the neighbors wait meanwhile
      worker.step([] {}, {.learning_rate = 0.02});
    }
    worker.await_finish();
    const std::lock_guard lock(mutex);
    group.has_seat() ? ++end.seats : ++end.without;
    if (group.has_seat()) end.sum += x[4];
  });
  return end;
}

double optimum(int workers) {
  double sum = 0;
  for (int seat = 0; seat < workers; ++seat) sum += target(seat);
  return sum / workers;
}

/// Of a run whose worker 1 and then worker 3 are lost.
constexpr int second_lost = 3, second_dies_in = 120;

/// Until a spare has the seat.
void lose_seat(Worker& worker, const Group& group, std::atomic<int>& deaths) {
  ++deaths;
  const Deadline deadline(Seconds(30));
  while (group.has_seat() && !deadline.expired()) std::this_thread::yield();
  worker.step([] {}, {.learning_rate = 0.02});
}

/// As long as the step of a slow model: the second spare is seated before the neighbors look.
void compute_until_replaced(const Group& group) {
  const Deadline deadline(Seconds(30));
  while (group.replaced().size() < 2 && !deadline.expired()) std::this_thread::yield();
}

/// The weights of all seats in the end.
std::vector<double> train_with_two_losses(const Run& run, int rounds = 800) {
  std::vector<double> ends;
  std::mutex mutex;
  std::atomic<int> deaths{0};
  const auto died = [&] {
    const std::vector<int> all{lost_worker, second_lost};
    return std::vector<int>(all.begin(), all.begin() + deaths);
  };
  local::run(run.workers + 2, [&](const Group& threads) {
    const Group group =
        with_spares(GroupImpl::group(std::make_shared<testing::Reported>(threads, died)), 2);
    std::vector<double> x(5, 1.0);
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name(run.rule, run.parameters);
    const TensorView view = testing::placed(view_of("x", std::span(x)), run.place, options);
    Worker worker(group, run.topology, {view}, options);
    const bool first = threads.rank() == lost_worker, second = threads.rank() == second_lost;
    while (worker.round() < (first ? run.dies_in : second ? second_dies_in : rounds)) {
      const auto step = [&] {
        if (!second && worker.round() >= second_dies_in) compute_until_replaced(group);
        for (double& value : x) value += 0.02 * (target(worker.rank()) - value);
      };
      worker.step(step, {.learning_rate = 0.02});
    }
    if (first || second) lose_seat(worker, group, deaths);
    worker.await_finish();
    const std::lock_guard lock(mutex);
    if (group.has_seat()) ends.push_back(x[4]);
  });
  return ends;
}

/// Worker 1 is lost when the others are in the step of round `dies_in`, which ends when the spare
/// has the seat: what a worker reads does not depend on who is faster. The weights of all seats.
std::vector<std::vector<double>> train_in_step(const Run& run) {
  constexpr std::size_t elements = 300;
  std::vector<std::vector<double>> ends(static_cast<std::size_t>(run.workers));
  std::atomic<bool> reports{false};
  std::atomic<int> ready{0};
  const auto come_together = [&](Worker& worker, const Group& group) {
    worker.consensus_distance();  // what this worker has published is there
    ++ready;
    const Deadline deadline(Seconds(30));
    while (group.replaced().empty() && !deadline.expired()) std::this_thread::yield();
  };
  local::run(run.workers + 1, [&](const Group& threads) {
    const Group group = with_spares(testing::reported(threads, lost_worker, reports), 1);
    std::vector<double> x(elements);
    Rng rng(static_cast<std::uint64_t>(threads.rank()));
    for (double& value : x) value = rng.normal();
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name(run.rule);
    options.codec = codec::by_name(run.codec);
    const TensorView view = testing::placed(view_of("x", std::span(x)), run.place, options);
    Worker worker(group, run.topology, {view}, options);
    const bool is_lost = threads.rank() == lost_worker, is_spare = threads.rank() == run.workers;
    while (worker.round() < (is_lost ? run.dies_in : run.dies_in + 20)) {
      const bool waits = !is_lost && !is_spare && worker.round() == run.dies_in;
      const auto step = [&] {
        if (waits) come_together(worker, group);
        for (double& value : x) value += 0.02 * (target(worker.rank()) - value);
      };
      worker.step(step, {.learning_rate = 0.02});
    }
    if (is_lost) {
      const Deadline deadline(Seconds(30));
      while (ready < run.workers - 1 && !deadline.expired()) std::this_thread::yield();
      reports = true;
      while (group.has_seat() && !deadline.expired()) std::this_thread::yield();
      worker.step([] {}, {.learning_rate = 0.02});
    }
    worker.await_finish();
    if (group.has_seat()) ends[static_cast<std::size_t>(worker.rank())] = x;
  });
  return ends;
}

}  // namespace

TEST_CASE("a spare that is not needed returns without a seat when training has ended") {
  local::run(5, [](const Group& threads) {
    const Group group = with_spares(threads, 2);
    const bool is_spare = threads.rank() >= 3;
    expect(group.size() == 3 && group.spares() == 2, "spares count as workers");
    expect(group.has_seat() == !is_spare, "another rank has a seat");
    std::vector<double> x(5, threads.rank());
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, testing::quick());
    expect(group.has_seat() == !is_spare, "another worker has a seat");
    int rounds = 0;
    for (; worker.round() < 40; ++rounds) worker.step([] {});
    worker.await_finish();
    expect(rounds == (is_spare ? 0 : 40), fmt::format("{} rounds", rounds));
    if (is_spare) return;
    worker.mean_model({view_of("x", std::span(x))});
    expect(std::abs(x[0] - 1) < 1e-9, "the mean is not that of the workers");
    expect(worker.departed().lost.empty() && group.replaced().empty(), "somebody was lost");
    group.barrier(Deadline(Seconds(30)), "the workers alone");
  });
}

TEST_CASE("with a spare on the lost worker's seat, the mean goes to the optimum of all") {
  for (const Run& run : {Run{"awc"}, Run{"atc"}, Run{"push_sum"}, Run{"d2"},
                         Run{"gradient_tracking"}, Run{"awc", 2}, Run{"atc", 2, 5}}) {
    INFO(run.rule << " at staleness " << run.staleness);
    const End end = train(run);
    CHECK(end.seats == run.workers);
    CHECK(end.without == 1);
    // Without the seat, it would be 6 and more away.
    CHECK(end.sum / run.workers ==
          Approx(optimum(run.workers)).margin(run.staleness == 0 ? 1e-3 : 1.0));
  }
}

TEST_CASE("a spare takes the seat of a lost worker whose weights are on a device") {
  const auto run = [](Place place, const char* rule, int workers, std::int64_t staleness = 0) {
    return Run{.rule = rule, .staleness = staleness, .workers = workers, .place = place};
  };
  const auto coded = [](Run run, const char* codec) {
    run.codec = codec;
    return run;
  };
  Run failing = run(Place::mapped, "awc", 4);
  failing.spares = 2;
  failing.first_fails = true;
  for (const Run& each :
       {coded(run(Place::mapped, "awc", 4), "int8"),
        coded(run(Place::staged, "awc", 3, 1), "bf16_stochastic"), run(Place::mapped, "awc", 4),
        run(Place::staged, "atc", 3), run(Place::mapped, "d2", 2),
        run(Place::staged, "push_sum", 4), run(Place::mapped, "gradient_tracking", 4),
        run(Place::mapped, "awc", 3, 1), run(Place::staged, "atc", 3, 1), failing}) {
    INFO(each.text());
    const End end = train(each);
    CHECK(end.seats == each.workers);
    CHECK(end.without == 1);
    // Without the seat, it would be 6 and more away.
    CHECK(end.sum / each.workers ==
          Approx(optimum(each.workers)).margin(each.staleness == 0 ? 0.3 : 1.0));
  }
}

TEST_CASE("workers on devices and a spare go the rounds of those on the host, bit for bit") {
  const std::uint64_t seed = test_seed(52);
  Rng rng(seed);
  std::vector<Run> runs{{"atc"}, {"atc", 0, 2}, {"gradient_tracking", 0, 3}};
  const std::vector<std::string_view> codecs = testing::codecs_of_weights();
  for (const char* rule : {"atc", "gradient_tracking", "d2"}) {
    for (int k = 0; k < 2; ++k) {
      Run run{.rule = rule, .workers = 2 + static_cast<int>(rng.below(3))};
      run.codec = std::string(codecs[1 + rng.below(codecs.size() - 1)]);
      run.dies_in = 5 + static_cast<int>(rng.below(40));
      runs.push_back(run);
    }
  }
  INFO("seed " << seed);
  for (Run run : runs) {
    const auto expected = train_in_step(run);
    CHECK(expected.back().size() > 0);
    for (const Place place : {Place::staged, Place::mapped}) {
      run.place = place;
      INFO(run.text());
      const auto found = train_in_step(run);
      if (testing::host_fuses()) CHECK(found == expected);
      for (std::size_t seat = 0; seat < found.size(); ++seat) {
        REQUIRE(found[seat].size() == expected[seat].size());
        for (std::size_t e = 0; e < found[seat].size(); ++e)
          REQUIRE(found[seat][e] == Approx(expected[seat][e]).epsilon(1e-9).margin(1e-9));
      }
    }
  }
}

TEST_CASE("a second spare, on another seat, restarts the rules that remember the neighbor before") {
  const algorithm::Parameters changes{{"period", "2"}, {"changes", "true"}};
  const algorithm::Parameters few{{"fraction", "0.4"}, {"consensus_step", "0.3"}};
  const TopologyRule directed = stencil::ring(true);
  for (const Run& run :
       {Run{"gradient_tracking", 0, 5}, Run{"d2", 0, 5},
        Run{.rule = "d2", .workers = 5, .place = Place::mapped},
        Run{.rule = "gradient_tracking", .workers = 5, .place = Place::staged},
        Run{"choco", 0, 5, 2, false, few}, Run{"gasloc", 0, 5, 2, false, changes},
        Run{.rule = "gasloc", .workers = 5, .parameters = changes, .place = Place::mapped},
        Run{"push_sum", 0, 5, 2, false, {}, "identity", directed}}) {
    INFO(run.text());
    const std::vector<double> ends = train_with_two_losses(run);
    REQUIRE(ends.size() == 5);
    double sum = 0;
    for (const double end : ends) sum += end / 5;
    CHECK(sum == Approx(optimum(run.workers)).margin(0.1));
    CAPTURE(ends[0], ends[1], ends[2], ends[3], ends[4]);
    for (const double end : ends) CHECK(end == Approx(sum).margin(3.0));
  }
}

TEST_CASE("gradient tracking goes to the optimum on directed edges, too, after spares came") {
  const TopologyRule directed = stencil::ring(true);
  for (const int workers : {4, 5, 7}) {
    const Run run{"gradient_tracking", 0, workers, 2, false, {}, "identity", directed};
    INFO(run.text());
    for (const double end : train_with_two_losses(run, 4000))
      CHECK(end == Approx(optimum(workers)).margin(1e-6));
  }
}

TEST_CASE("with a spare, rules with local steps or few entries go to the optimum of all") {
  const std::uint64_t seed = test_seed(51);
  Rng rng(seed);
  for (int k = 0; k < 12; ++k) {
    const Run run = drawn_run(rng);
    INFO("seed " << seed << ", case " << k << ": " << run.text());
    const End end = train(run);
    CHECK(end.seats == run.workers);
    CHECK(end.without == 1);
    CHECK(end.sum / run.workers == Approx(optimum(run.workers)).margin(0.1));
  }
}

TEST_CASE("with a spare, rules with local steps on devices go to the optimum of all, in any code") {
  const std::uint64_t seed = test_seed(53);
  Rng rng(seed);
  for (int k = 0; k < 6;) {
    Run run = drawn_run(rng);
    if (run.rule == "sparta" || run.rule == "choco") continue;
    const bool changes = run.parameters.contains("changes");
    run.place = k % 2 == 0 ? Place::staged : Place::mapped;
    if (changes || run.rule == "noloco") run.codec = changes && k % 3 == 0 ? "int4" : "int8";
    INFO("seed " << seed << ", case " << k++ << ": " << run.text());
    const End end = train(run);
    CHECK(end.seats == run.workers);
    CHECK(end.without == 1);
    // Without the seat, it would be 6 and more away; rounds are few.
    CHECK(end.sum / run.workers == Approx(optimum(run.workers)).margin(1.0));
  }
}

TEST_CASE("workers that have republished and a spare end at the same combination") {
  constexpr std::int64_t dies_in = 50, rounds = 300;
  std::atomic<bool> reports{false};
  for (const auto& [mix_every, mix_times] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 1}, {1, 3}, {2, 2}}) {
    reports = false;
    local::run(4, [&, mix_every = mix_every, mix_times = mix_times](const Group& threads) {
      const Group group = with_spares(testing::reported(threads, lost_worker, reports), 1);
      std::vector<double> x(5, 1.0);
      WorkerOptions options = testing::quick();
      options.mix_every = mix_every;
      options.mix_times = mix_times;
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      const bool is_lost = threads.rank() == lost_worker, is_spare = threads.rank() == 3;
      if (!is_spare) worker.republish();
      while (worker.round() < (is_lost ? dies_in : rounds)) worker.step([] {});
      reports = reports || is_lost;
      const Deadline deadline(Seconds(30));
      while (is_lost && group.has_seat() && !deadline.expired()) std::this_thread::yield();
      if (is_lost) worker.step([] {});
      worker.await_finish();
      if (is_lost) return;
      const membership::RankMap& map = exchange::members_of(group)->map();
      for (int seat = 0; seat < 3; ++seat) {
        const std::int64_t combinations = map.records().progress(map.holder(seat));
        expect(combinations == rounds / mix_every * mix_times + 1,
               fmt::format("seat {} ends at combination {}", seat, combinations));
      }
      if (is_spare)
        expect(worker.stats().predecessor_rounds == dies_in - dies_in % mix_every,
               fmt::format("{} rounds before", worker.stats().predecessor_rounds));
    });
  }
}

TEST_CASE("a spare that fails leaves its seat to the next spare, and training goes on") {
  for (const Run& run : {Run{"awc", 0, 4, 2, true}, Run{"push_sum", 0, 3, 2, true}}) {
    INFO(run.rule);
    const End end = train(run);
    CHECK(end.seats == run.workers);
    CHECK(end.without == 1);  // the worker that was lost
    CHECK(end.sum / run.workers == Approx(optimum(run.workers)).margin(1e-3));
  }
}

TEST_CASE("a spare whose rule cannot be made leaves its seat to the next spare") {
  constexpr int failing = 3;
  std::atomic<bool> reports{false};
  std::string warnings;  // of the spare that fails
  local::run(5, [&](const Group& threads) {
    const Group group = with_spares(testing::reported(threads, lost_worker, reports), 2);
    std::vector<double> x(5, 1.0);
    WorkerOptions options = testing::quick();
    const bool fails = threads.rank() == failing;
    const algorithm::Rule awc = algorithm::awc();
    options.algorithm = algorithm::Rule([=] {  // of a spare: it fails on a seat
      if (fails && group.rank() < group.size()) throw std::runtime_error("the disk is full");
      return awc.make();
    });
    if (fails) options.log = [&](LogLevel, std::string_view text) { warnings += text; };
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    expect(!fails || !group.has_seat(), "the spare that fails has a seat");
    const bool is_lost = threads.rank() == lost_worker;
    while (worker.round() < (is_lost ? 50 : 300)) worker.step([] {});
    if (is_lost) {
      reports = true;
      const Deadline deadline(Seconds(30));
      while (group.has_seat() && !deadline.expired()) std::this_thread::yield();
      worker.step([] {});
    }
    worker.await_finish();
    const bool trains = !is_lost && !fails;
    expect(group.has_seat() == trains, "another rank has a seat");
    if (trains) expect(group.replaced() == std::vector<int>{lost_worker}, "no spare has the seat");
  });
  CHECK_THAT(warnings, ContainsSubstring("the disk is full"));
}

TEST_CASE("a program on slots needs no other lines for a spare that is not needed") {
  local::run(3, [](const Group& threads) {
    const Group group = with_spares(threads, 1);
    std::vector<double> x(5, threads.rank());
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, testing::quick());
    RotatingArena<double> arena(worker);
    const PartUpdate<double> nothing = [](std::size_t, std::span<double>) {};
    expect((arena.weights() != nullptr) == group.has_seat(), "a spare has weights in slots");
    while (worker.round() < 40) arena.step([](const double*) { return 1.0; }, nothing);
    if (!group.has_seat()) {
      arena.end_round(nothing);
      worker.set_schedule(stencil::ring());
    }
    worker.await_finish();
    const Departures departed = worker.departed();
    expect(departed.finished.empty() && departed.lost.empty(), "somebody was lost");
    // Two workers that begin with 0 and 1 have the mean 1/2; a spare keeps what it has.
    const double end = group.has_seat() ? 0.5 : threads.rank();
    expect(std::abs(x[0] - end) < 1e-9, fmt::format("ends with {}", x[0]));
  });
}

TEST_CASE("another topology is refused while there are spares, which would not learn of it") {
  local::run(3, [](const Group& threads) {
    const Group group = with_spares(threads, 1);
    std::vector<double> x(5, threads.rank());
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, testing::quick());
    if (group.has_seat()) {
      bool refused = false;
      try {
        worker.set_schedule(stencil::complete());
      } catch (const Error& error) {
        refused = error.kind() == ErrorKind::argument;
      }
      expect(refused, "the topology has changed");
    }
    while (worker.round() < 10) worker.step([] {});
    worker.await_finish();
  });
}

TEST_CASE("as many spares as ranks are refused, and rules that average over all workers") {
  local::run(2, [](const Group& threads) {
    bool refused = false;
    try {
      with_spares(threads, 2);
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::argument;
    }
    expect(refused, "2 spares of 2 ranks");
    const Group group = with_spares(threads, 1);
    std::vector<double> x(5);
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name("gossip_pga");
    try {
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      expect(false, "gossip_pga with a spare");
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::argument, error.what());
    }
  });
}
