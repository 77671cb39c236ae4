// What a Worker tells its observer: phases that add up, and a publication for each read.
#include <fast/algorithm/rules.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "worker/constant.hpp"

using namespace fast;
using testing::Constant;

namespace {

/// Keeps everything, of all workers.
class Recorder final : public Observer {
 public:
  void on_phase(const PhaseEvent& event) noexcept override { keep(phases, event); }
  void on_message(const MessageEvent& event) noexcept override { keep(messages, event); }
  void on_peer(const PeerEvent& event) noexcept override { keep(peers, event); }

  std::vector<PhaseEvent> phases;
  std::vector<MessageEvent> messages;
  std::vector<PeerEvent> peers;

 private:
  template <class Event>
  void keep(std::vector<Event>& events, const Event& event) {
    const std::lock_guard lock(mutex_);
    events.push_back(event);
  }
  std::mutex mutex_;
};

using Publications = std::map<std::pair<int, std::uint64_t>, MessageEvent>;  ///< by worker, number

Publications publications_of(const Recorder& all) {
  Publications found;
  for (const MessageEvent& event : all.messages) {
    if (event.kind == MessageEvent::Kind::published) found[{event.from, event.sequence}] = event;
  }
  return found;
}

struct Observed {
  int workers = 3;
  int rounds = 20;
  WorkerOptions options = testing::quick();
  std::map<int, WorkerStats> stats{};
};

std::shared_ptr<Recorder> record(Observed& run) {
  auto all = std::make_shared<Recorder>();
  run.options.observer = all;
  std::mutex mutex;
  local::run(run.workers, [&](const Group& group) {
    Constant c(group, stencil::ring(), group.rank(), run.options);
    c.idle(run.rounds);
    const std::lock_guard lock(mutex);
    run.stats[group.rank()] = c.worker.stats();
  });
  return all;
}

/// Seconds that the phases of one kind took, without waits for single peers.
double total_s(const Recorder& all, Phase phase, int worker) {
  double sum = 0;
  for (const PhaseEvent& event : all.phases) {
    if (event.phase == phase && event.worker == worker && event.peer < 0) {
      sum += Seconds(event.ended - event.began).count();
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a round at staleness 0 is a step, waits, a mix and a commit, in this order") {
  Observed run;
  const auto all = record(run);
  std::map<std::pair<int, std::int64_t>, std::vector<PhaseEvent>> rounds;
  for (const PhaseEvent& event : all->phases) {
    if (event.peer < 0 && event.phase != Phase::publish) {
      rounds[{event.worker, event.round}].push_back(event);
    }
  }
  REQUIRE(rounds.size() == static_cast<std::size_t>(run.workers * run.rounds));
  for (const auto& [key, events] : rounds) {
    std::vector<Phase> order;
    for (const PhaseEvent& event : events) order.push_back(event.phase);
    CHECK(order == std::vector{Phase::step, Phase::wait, Phase::wait, Phase::mix, Phase::commit});
    for (std::size_t k = 1; k < events.size(); ++k) CHECK(events[k - 1].ended <= events[k].began);
  }
}

TEST_CASE(
    "each read has its publication, of the same number and earlier: rules, staleness, codecs") {
  const std::uint64_t seed = 20;
  CAPTURE(seed);
  Rng rng(seed);
  for (int draw = 0; draw < 12; ++draw) {
    Observed run;
    const std::vector<std::string> rules = {"awc", "atc", "push_sum", "event_triggered"};
    const std::string rule = rules[rng.below(rules.size())];
    run.options.algorithm = algorithm::by_name(rule);
    const bool stale = rule != "event_triggered" && rng.below(2) == 0;
    run.options.staleness = stale ? (rng.below(2) == 0 ? 2 : unbounded_staleness) : 0;
    if (rule == "awc" || rule == "atc") {
      run.options.codec = codec::by_name(rng.below(2) == 0 ? "identity" : "int8");
    }
    run.workers = 2 + static_cast<int>(rng.below(4));
    CAPTURE(draw, rule, run.options.staleness, run.workers, codec::name(run.options.codec));
    const auto all = record(run);
    const Publications published = publications_of(*all);
    std::map<int, std::int64_t> reads, fresh;
    for (const MessageEvent& event : all->messages) {
      if (event.kind != MessageEvent::Kind::read) continue;
      const auto source = published.find({event.from, event.sequence});
      REQUIRE(source != published.end());
      CHECK(source->second.at <= event.at);
      CHECK(event.age >= 0);
      ++reads[event.worker];
      fresh[event.worker] += event.fresh ? 1 : 0;
    }
    for (const auto& [worker, stats] : run.stats) {
      CHECK(reads[worker] == stats.reads);
      CHECK(fresh[worker] == stats.fresh_reads);
    }
  }
}

TEST_CASE("the phases add up to the seconds of the statistics") {
  Observed run;
  run.options.algorithm = algorithm::by_name("atc");
  const auto all = record(run);
  for (const auto& [worker, stats] : run.stats) {
    CHECK(total_s(*all, Phase::step, worker) == Approx(stats.step_s).margin(1e-9));
    CHECK(total_s(*all, Phase::wait, worker) == Approx(stats.wait_s).margin(1e-9));
    CHECK(total_s(*all, Phase::mix, worker) == Approx(stats.mix_s).margin(1e-9));
    CHECK(total_s(*all, Phase::publish, worker) >= stats.publish_s - 1e-9);  // and the last one
  }
}

TEST_CASE("events have the round in which they happen, whatever combines how often") {
  for (const bool of_rule : {false, true}) {
    Observed run;
    const std::int64_t steps = 4;
    if (of_rule) run.options.algorithm = algorithm::local({.period = 4});
    if (!of_rule) run.options.mix_every = steps;
    CAPTURE(of_rule);
    const auto all = record(run);
    std::map<int, std::int64_t> next;  // by worker
    for (const PhaseEvent& event : all->phases) {
      if (event.phase == Phase::step) CHECK(event.round == next[event.worker]++);
      const bool of_combination = event.phase == Phase::wait || event.phase == Phase::mix;
      const bool after_training = event.round == run.rounds;  // the last publication
      if (of_combination && !after_training) CHECK(event.round % steps == steps - 1);
    }
    for (const auto& [worker, rounds] : next) CHECK(rounds == run.rounds);
    std::set<std::int64_t> read_in;
    for (const MessageEvent& event : all->messages) {
      if (event.kind == MessageEvent::Kind::read) read_in.insert(event.round);
    }
    CHECK(read_in == std::set<std::int64_t>{3, 7, 11, 15, 19});
  }
}

TEST_CASE("a wait for a slow neighbor names it") {
  bool names_it = false;
  for (int time = 0; time < 10 && !names_it; ++time) {  // a busy machine may make others slow
    auto all = std::make_shared<Recorder>();
    local::run(3, [&](const Group& group) {
      WorkerOptions options = testing::quick();
      options.observer = all;
      Constant c(group, stencil::ring(), group.rank(), options);
      for (int t = 0; t < 5; ++t) {
        c.worker.step([&] {
          if (group.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(30));
        });
      }
    });
    Seconds waited[3] = {};
    for (const PhaseEvent& event : all->phases) {
      if (event.worker == 0 && event.peer >= 0) waited[event.peer] += event.ended - event.began;
    }
    names_it = waited[2].count() > .06 && waited[2] > waited[1];
  }
  CHECK(names_it);
}

TEST_CASE("without observers there is none; one stands for itself; several are told alike") {
  CHECK(all_of({}) == nullptr);
  CHECK(all_of({nullptr, nullptr}) == nullptr);
  const auto first = std::make_shared<Recorder>(), second = std::make_shared<Recorder>();
  CHECK(all_of({nullptr, first}) == first);
  const auto both = all_of({first, nullptr, second});
  both->on_phase({});
  both->on_message({});
  both->on_message({});
  both->on_peer({});
  CHECK(first->phases.size() == 1);
  CHECK(second->messages.size() == 2);
  CHECK(second->peers.size() == 1);
}
