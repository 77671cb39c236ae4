// Workers that become more, as threads. All suspect nobody before half a minute has passed: no test
// ends in time if somebody waits for a worker that does not come.
#include <fcntl.h>
#include <unistd.h>

#include <fast/exchange/local.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "exchange/open_coordinator.hpp"
#include "mpi/launcher.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/participation.hpp"
#include "worker/placed.hpp"
#include "worker/quick.hpp"
#include "worker/reported.hpp"

using namespace fast;
using testing::expect;
using testing::Place;

namespace {

constexpr std::int64_t asks_in = 30, most_rounds_before = 20000;
constexpr double growing_rate = 0.02;

struct GrowingRun {
  std::string rule;
  std::int64_t staleness = 0;
  int workers = 3, growths = 1;
  std::string topology = "ring";
  std::int64_t mix_every = 1;
  GrowthRounds allowed = {};
  int spares = 0;            ///< more than those that join
  std::int64_t dies_in = 0;  ///< the round in which worker 1 dies; 0: it lives
  algorithm::Parameters parameters{};
  const char* codec = "identity";
  double margin = 0;         ///< 0: as growing_margin() has it
  bool resumes = false;      ///< a run that had grown once
  bool republishes = false;  ///< before the last round of the smaller run
  Place place = Place::host;
  std::int64_t rounds = 600;  ///< after the last growth
};

/// That of the newcomers is far away.
double growing_target(const GrowingRun& run, int worker) {
  return worker >= run.workers ? 20.0 + worker : 2.0 * worker;
}

double growing_optimum(const GrowingRun& run) {
  double sum = 0;
  const int all = run.workers + run.growths;
  for (int worker = 0; worker < all; ++worker) sum += growing_target(run, worker);
  return sum / all;
}

WorkerOptions growing_options(const GrowingRun& run) {
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(
      run.rule, run.rule == "choco" ? algorithm::Parameters{{"fraction", "1"}} : run.parameters);
  options.codec = codec::by_name(run.codec);
  options.staleness = run.staleness;
  options.mix_every = run.mix_every;
  options.suspect_after = Seconds(30);
  options.deadline = Seconds(60);
  return options;
}

/// Workers that do not wait for each other could be any number of rounds apart, and then the mean
/// could be anywhere. So the test keeps them within this many.
constexpr std::int64_t rounds_apart = 5;
constexpr int most_workers = 8;

/// What the workers of a run find.
struct Grown {
  std::array<std::atomic<std::int64_t>, most_workers> after{};  ///< rounds since the last growth
  std::atomic<bool> reports{false};                             ///< the death of worker 1
  std::atomic<std::int64_t> grown_in{0};                        ///< the round of the last growth
  std::mutex mutex;
  double sum = 0;
  int trained = 0, idle = 0;
  std::vector<double> means;
  std::vector<std::int64_t> changed_in;  ///< rounds, of those that were there before
};

/// Waits, for half a minute at most, until no worker is more than `rounds_apart` behind.
void keep_together(Grown& grown, int workers, int worker, std::int64_t rounds) {
  grown.after.at(worker) = rounds;
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < last) {
    const auto slowest = std::min_element(grown.after.begin(), grown.after.begin() + workers);
    if (rounds <= *slowest + rounds_apart) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

/// The distance from the optimum that a run may end in. Each worker reads weights that are at most
/// a = staleness, or `rounds_apart`, rounds old, and the last one makes at most `rounds_apart`
/// rounds alone: each of these moves the mean by the step times the mean distance to the targets.
double growing_margin(const GrowingRun& run) {
  if (run.margin > 0) return run.margin;
  if (run.staleness == 0) return 1e-3;
  const std::int64_t old = std::min(run.staleness, rounds_apart) + rounds_apart;
  double distance = 0;
  const int all = run.workers + run.growths;
  for (int worker = 0; worker < all; ++worker)
    distance += std::abs(growing_target(run, worker) - growing_optimum(run)) / all;
  return growing_rate * static_cast<double>(old) * distance;
}

/// A spare that takes a seat in a run that has grown.
std::int64_t round_of_growth(const Grown& grown) {
  while (grown.grown_in == 0) std::this_thread::yield();
  return grown.grown_in;
}

/// Until the launcher reports its death, and then until a spare has its seat.
void die(Worker& worker, const Group& group, std::atomic<bool>& reports) {
  reports = true;
  while (group.has_seat()) std::this_thread::yield();
  worker.step([] {}, {.learning_rate = growing_rate});
}

/// From the state of a worker whose run had grown once.
void resume_grown(Worker& worker) {
  std::deque<std::vector<std::byte>> memory;
  std::vector<TensorView> saved = worker.state();
  for (TensorView& view : saved) {
    const auto* data = static_cast<const std::byte*>(view.data);
    view.data = memory.emplace_back(data, data + view.size_bytes()).data();
    const double epoch = worker::epoch_of_growth(1) + 2;
    if (view.name == "mixer.epoch") std::memcpy(view.data, &epoch, sizeof epoch);
  }
  worker.restore(saved);
}

/// If the workers become more after the coming round.
void republish_before_growth(Worker& worker, const Group& group) {
  const auto coming = exchange::members_of(group)->growth().coming();
  if (coming && worker.round() + 1 == coming->round) worker.republish();
}

/// In steps of a millisecond, so that growth takes some rounds.
void grow_and_train(const GrowingRun& run, const Group& threads, Grown& grown) {
  const Group group =
      with_spares(testing::reported(threads, 1, grown.reports), run.growths + run.spares);
  std::vector<double> x(5, 1.0);
  const TopologyRule rule = run.topology == "ring"       ? stencil::ring()
                            : run.topology == "matching" ? schedule::random_matchings()
                                                         : stencil::complete();
  WorkerOptions options = growing_options(run);
  const TensorView view = testing::placed(view_of("x", std::span(x)), run.place, options);
  Worker worker(group, rule, {view}, options);
  if (run.resumes && threads.rank() < run.workers) resume_grown(worker);
  worker.allow_growth(run.allowed);
  const bool is_spare = threads.rank() >= run.workers;
  const bool joins = is_spare && worker.rank() >= run.workers;
  const bool dies = threads.rank() == 1 && run.dies_in > 0;
  const int all = run.workers + run.growths;
  int size = worker.size();
  std::int64_t changed = 0;
  if (joins) changed = worker.stats().predecessor_rounds;
  if (is_spare && !joins && group.has_seat() && size == all) changed = round_of_growth(grown);
  std::int64_t end = dies ? run.dies_in : size == all ? changed + run.rounds : most_rounds_before;
  while (worker.round() < end) {
    if (threads.rank() == 0 && worker.round() == asks_in) {
      for (int k = 0; k < run.growths; ++k) exchange::members_of(group)->growth().request();
    }
    if (run.republishes) republish_before_growth(worker, group);
    if (run.staleness != 0 && size == all)
      keep_together(grown, all, worker.rank(), worker.round() - changed);
    worker.step(
        [&] {
          std::this_thread::sleep_for(std::chrono::microseconds(500));
          for (double& value : x)
            value += growing_rate * (growing_target(run, worker.rank()) - value);
        },
        {.learning_rate = growing_rate});
    if (size == worker.size()) continue;
    size = worker.size();
    changed = worker.round();
    if (size == all) grown.grown_in = changed;
    if (size == all && !dies) end = changed + run.rounds;
  }
  if (dies) die(worker, group, grown.reports);
  worker.await_finish();
  const std::lock_guard lock(grown.mutex);
  if (!group.has_seat()) {
    ++grown.idle;
    return;
  }
  ++grown.trained;
  expect(worker.size() == all, fmt::format("worker {}: {} workers", worker.rank(), worker.size()));
  const std::vector<int> replaced = run.dies_in > 0 ? std::vector<int>{1} : std::vector<int>{};
  expect(worker.departed().lost.empty() && group.replaced() == replaced, "somebody counts as lost");
  expect(group.joined().size() == static_cast<std::size_t>(run.growths),
         "who has joined is not known");
  if (!is_spare) grown.changed_in.push_back(changed);
  std::vector<double> mean(5);
  worker.mean_model({view_of("x", std::span(mean))});
  grown.means.push_back(mean[4]);
  grown.sum += x[4];
}

void check_growth(const GrowingRun& run) {
  INFO(run.rule << " at staleness " << run.staleness << ", " << run.workers << " + " << run.growths
                << ", " << testing::name(run.place));
  Grown grown;
  local::run(run.workers + run.growths + run.spares,
             [&](const Group& threads) { grow_and_train(run, threads, grown); });
  const int all = run.workers + run.growths;
  CHECK(grown.trained == all);
  CHECK(grown.idle == run.spares);
  const double mean = grown.sum / all;
  // Without the newcomers, it would be 5 and more away.
  CHECK(mean == Approx(growing_optimum(run)).margin(growing_margin(run)));
  for (const double one : grown.means) CHECK(one == Approx(mean).margin(1e-9));
  for (const std::int64_t round : grown.changed_in) CHECK(round == grown.changed_in.front());
}

/// What ranks tell their launcher meanwhile.
class LauncherNotes {
 public:
  LauncherNotes() {
    testing::expect(pipe2(ends_.data(), O_NONBLOCK) == 0, "no pipe");
    setenv(mpi::launcher_descriptor, std::to_string(ends_[1]).c_str(), 1);
  }
  ~LauncherNotes() {
    unsetenv(mpi::launcher_descriptor);
    for (const int end : ends_) close(end);
  }
  LauncherNotes(const LauncherNotes&) = delete;
  LauncherNotes& operator=(const LauncherNotes&) = delete;
  /// Those of a kind, of all that were told.
  std::ptrdiff_t count(mpi::LauncherNote note) {
    std::array<char, 4096> bytes{};
    for (ssize_t n = 0; (n = read(ends_[0], bytes.data(), bytes.size())) > 0;)
      told_.append(bytes.data(), static_cast<std::size_t>(n));
    return std::count(told_.begin(), told_.end(), static_cast<char>(note));
  }

 private:
  std::array<int, 2> ends_{};
  std::string told_;
};

/// Averages. A worker that fails does so when it publishes for the first time.
struct FailingAverage {
  bool fails = false;

  algorithm::RuleTraits traits() const {
    return {.name = "failing average",
            .summary = "x",
            .source = "x",
            .messages = {.republishes = true}};
  }
  bool begin_publish(const algorithm::RoundInfo&, std::span<double>) const {
    require(!fails, ErrorKind::resource, "the newcomer fails");
    return true;
  }
  template <class T>
  void publish(const algorithm::Block<T>& block) const {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const algorithm::Block<T>& block) const {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

}  // namespace

TEST_CASE("when a worker joins, the mean goes to the optimum of all") {
  for (const GrowingRun& run : {GrowingRun{"awc"}, GrowingRun{"atc"}, GrowingRun{"awc", 0, 2},
                                GrowingRun{"awc", 0, 1}, GrowingRun{"atc", 0, 4, 1, "complete"}})
    check_growth(run);
}

TEST_CASE("rules with memory begin anew when a worker joins") {
  for (const GrowingRun& run : {GrowingRun{"push_sum"}, GrowingRun{"d2"}, GrowingRun{"choco"},
                                GrowingRun{"gradient_tracking"}, GrowingRun{"push_sum", 0, 4}})
    check_growth(run);
}

TEST_CASE("a run grows whose weights are on devices") {
  const auto run = [](Place place, const char* rule, int workers, std::int64_t staleness = 0) {
    GrowingRun run{.rule = rule, .staleness = staleness, .workers = workers, .place = place};
    run.rounds = 200;  // the host takes long to play devices
    run.margin = staleness == 0 ? 0.5 : 0.0;
    return run;
  };
  GrowingRun losing = run(Place::mapped, "awc", 3);
  losing.spares = 1;
  losing.dies_in = asks_in + 5;
  for (const GrowingRun& each :
       {run(Place::mapped, "awc", 2), run(Place::staged, "awc", 1), run(Place::staged, "atc", 3),
        run(Place::mapped, "d2", 3), run(Place::mapped, "gradient_tracking", 3),
        run(Place::staged, "push_sum", 4), run(Place::mapped, "awc", 3, 1),
        run(Place::staged, "atc", 3, 1), losing})
    check_growth(each);
}

TEST_CASE("a resumed run that had grown before grows again, and rules with memory begin anew") {
  for (const char* rule : {"choco", "d2", "gradient_tracking", "push_sum"})
    check_growth({.rule = rule, .resumes = true});
  check_growth({.rule = "choco", .growths = 2, .resumes = true});
}

TEST_CASE("workers that republish before the round of a growth are more from the same round on") {
  for (const std::int64_t mix_every : {1, 3}) {
    GrowingRun run{.rule = "awc", .mix_every = mix_every};
    run.republishes = true;
    run.margin = mix_every == 1 ? 0 : 0.1;
    check_growth(run);
  }
}

TEST_CASE("rules with local steps or few entries grow, whatever the round") {
  const algorithm::Parameters delayed{{"period", "4"}, {"delay", "1"}};
  algorithm::Parameters changes = delayed, momentum = delayed;
  changes.insert({{"changes", "true"}, {"consensus_step", "0.6"}});
  momentum.insert({"momentum", "0.4"});
  const auto run = [](const char* rule, const char* topology, const algorithm::Parameters& with,
                      const char* codec = "identity") {
    GrowingRun run{.rule = rule, .topology = topology, .parameters = with, .codec = codec};
    run.margin = 0.1;
    return run;
  };
  for (const GrowingRun& each :
       {run("gasloc", "ring", delayed), run("gasloc", "complete", changes),
        run("gasloc", "ring", changes, "int8"), run("diloco", "complete", momentum),
        run("noloco", "matching", momentum),
        run("sparta", "ring", {{"fraction", "0.4"}}, "bf16")}) {
    check_growth(each);
  }
}

TEST_CASE("workers that do not wait for the same round grow, too") {
  for (const GrowingRun& run :
       {GrowingRun{"awc", 2}, GrowingRun{"atc", 1, 4}, GrowingRun{"awc", unbounded_staleness}})
    check_growth(run);
}

TEST_CASE("several workers join one after the other, and a spare stays asleep") {
  check_growth({.rule = "awc", .growths = 2, .spares = 1});
  check_growth({.rule = "push_sum", .growths = 2});
}

TEST_CASE("a worker joins in rounds that the program allows, also when it combines rarely") {
  for (const std::int64_t mix_every : {1, 3}) {
    GrowingRun run{.rule = "awc", .mix_every = mix_every, .allowed = {.first = 7, .every = 100}};
    Grown grown;
    local::run(4, [&](const Group& threads) { grow_and_train(run, threads, grown); });
    CHECK(grown.trained == 4);
    for (const std::int64_t round : grown.changed_in) CHECK(round % 100 == 7);
  }
}

TEST_CASE("a spare takes a lost worker's seat while another one joins") {
  for (const std::int64_t round : {asks_in - 15, asks_in - 2, asks_in, asks_in + 5, asks_in + 100})
    check_growth({.rule = "awc", .spares = 1, .dies_in = round});
  check_growth({.rule = "push_sum", .spares = 1, .dies_in = asks_in});
}

TEST_CASE("a program that does not allow it does not grow, and the spare ends with the run") {
  local::run(3, [](const Group& threads) {
    const Group group = with_spares(threads, 1);
    std::vector<double> x(5, 1.0);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, growing_options({"awc"}));
    if (threads.rank() == 0) exchange::members_of(group)->growth().request();
    while (worker.round() < 400) {
      worker.step([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    }
    worker.await_finish();
    expect(group.has_seat() == (threads.rank() < 2), "the spare has joined");
    expect(group.joined().empty(), "somebody has joined");
    if (group.has_seat()) group.barrier(Deadline(Seconds(30)), "the workers alone");
  });
}

TEST_CASE("a spare has joined that begins in place of a newcomer that failed before") {
  LauncherNotes notes;
  local::run(5, [](const Group& threads) {
    const Group group = with_spares(threads, 2);
    const bool fails = threads.rank() == 3;
    std::vector<double> x(5, 1.0);
    WorkerOptions options = growing_options({"awc"});
    options.algorithm = algorithm::elementwise(FailingAverage{fails});
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    worker.allow_growth();
    if (threads.rank() == 0) exchange::members_of(group)->growth().request();
    while (worker.round() < 1500)
      worker.step([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    worker.await_finish();
    expect(group.has_seat() == !fails, "another rank has a seat");
    if (!fails) expect(group.joined() == std::vector<int>{3}, "nobody has joined");
  });
  CHECK(notes.count(mpi::LauncherNote::joined) == 1);
  CHECK(notes.count(mpi::LauncherNote::took_seat) == 0);
}
