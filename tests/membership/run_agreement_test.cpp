// Agreements of simulated workers: in which round they save and stop, however training, ticks and
// news interleave.
#include "membership/run_agreement.hpp"

#include <fast/core/random.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "membership/hall.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using namespace fast::membership;

namespace {

// So long that none is taken for silent that is only drawn rarely.
constexpr Seconds tick_time{0.1}, silent_after{10};

/// A worker's part in a run; it ticks when the test says so.
struct Part {
  Part(testing::Records& memory, int rank, int founders, bool exact = true)
      : coordinator(memory.coordinator(rank)),
        map(std::make_shared<RankMap>(memory.board(rank), founders)),
        agreement(coordinator, map,
                  {.exact = exact, .silent_after = silent_after, .stop_requested = {}}) {}
  void tick(Seconds elapsed = tick_time) { coordinator->tick(elapsed); }
  std::shared_ptr<Coordinator> coordinator;
  std::shared_ptr<RankMap> map;
  RunAgreement agreement;
};

/// Workers on a ring at staleness 0: one ends a round when both neighbors have begun it.
class Simulation {
 public:
  Simulation(int workers, int hosts, bool exact, std::int64_t rounds)
      : exact_(exact),
        rounds_(rounds),
        host_of_(hosts),
        workers_(static_cast<std::size_t>(workers)) {
    for (int host = 0; host < hosts; ++host)
      memory_.push_back(std::make_unique<testing::Records>(workers));
    // Each worker has its own copies of what is on other hosts; here the hosts' share one each.
    for (int w = 0; w < workers; ++w) {
      Worker& one = workers_[static_cast<std::size_t>(w)];
      one.part =
          std::make_unique<Part>(*memory_[static_cast<std::size_t>(host(w))], w, workers, exact);
      one.agreement = &one.part->agreement;
    }
  }

  std::int64_t epoch = 0;  ///< rounds; 0: the rate does not change

  struct Worker {
    std::unique_ptr<Part> part;
    RunAgreement* agreement = nullptr;  ///< of `part`
    std::int64_t made = 0, begun = 0;
    bool alive = true, ended = false, stopped = false;
    std::vector<std::int64_t> saves;
    std::vector<std::int64_t> reductions = {};  ///< by round, of the rate
  };

  void tick(int w) {
    if (worker(w).alive) worker(w).part->tick();
  }
  /// From one worker's host to another's.
  void tell(int from, int to) {
    if (!worker(from).alive || !worker(to).alive || host(from) == host(to)) return;
    const RecordBoard& source = worker(from).part->coordinator->board();
    std::vector<std::uint64_t> words(source.words_of_all());
    std::vector<bool> here;
    for (int w = 0; w < size(); ++w) here.push_back(host(w) == host(to));
    source.copy_to(words);
    worker(to).part->coordinator->board().take_over(words, here);
  }
  /// A step of training, if the worker can make one.
  void train(int w) {
    Worker& one = worker(w);
    if (!one.alive || one.ended) return;
    if (one.made < one.begun) {
      for (const int neighbor : {(w + 1) % size(), (w + size() - 1) % size()}) {
        const Worker& other = worker(neighbor);
        if (exact_ && other.alive && !other.ended && other.begun < one.begun) return;
      }
      ++one.made;
      return;
    }
    if (one.made == rounds_) return end(one, Stage::done);
    if (epoch > 0 && one.made % epoch == 0) one.agreement->lower_from(one.made + epoch);
    switch (one.agreement->turn(one.made, 2)) {
      case RoundDecision::go:
        one.begun = one.made + 1;
        one.reductions.push_back(one.agreement->reductions(one.made));
        break;
      case RoundDecision::hold:
        break;
      case RoundDecision::save:
        save_once(one, one.agreement->round_of(Request::save));
        one.agreement->saved();
        break;
      case RoundDecision::stop:
        one.stopped = true;
        save_once(one, one.agreement->round_of(Request::stop));
        end(one, Stage::stopped);
        break;
      case RoundDecision::enter:
        FAIL("no run grows here");
    }
  }
  /// Of a stale worker that has ended.
  static void save_again(Worker& one) {
    if (!one.agreement->save_is_due(one.made)) return;
    save_once(one, one.agreement->round_of(Request::save));
    one.agreement->saved();
  }
  static void save_once(Worker& one, std::int64_t round) {
    if (one.saves.empty() || one.saves.back() != round) one.saves.push_back(round);
  }
  void end(Worker& one, Stage stage) {
    one.agreement->end(stage, one.made);
    one.ended = true;
  }
  bool over() const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const Worker& one) { return !one.alive || one.ended; });
  }
  int size() const { return static_cast<int>(workers_.size()); }
  int host(int w) const { return w % host_of_; }
  Worker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  std::vector<Worker>& workers() { return workers_; }
  std::int64_t furthest() const {
    std::int64_t most = 0;
    for (const Worker& one : workers_) most = std::max(most, one.begun);
    return most;
  }

 private:
  bool exact_;
  std::int64_t rounds_;
  int host_of_;
  std::vector<std::unique_ptr<testing::Records>> memory_;
  std::vector<Worker> workers_;
};

/// One random thing happens; `slow` trains rarely.
void step(Simulation& run, Rng& rng, int slow) {
  const auto any = [&] {
    return static_cast<int>(rng.below(static_cast<std::size_t>(run.size())));
  };
  const auto what = rng.below(4);
  const int w = any();
  if (what == 0) run.tick(w);
  if (what == 1) run.tell(w, any());
  if (what >= 2 && (w != slow || rng.below(20) == 0)) run.train(w);
}

}  // namespace

TEST_CASE("a stop is put off to the round in which newcomers begin, unless that is far") {
  for (const auto& [begins, expected] : {std::pair<std::int64_t, std::int64_t>{9, 9},
                                         {21, 21},   // 20 rounds are 10 times as far as `ahead`
                                         {22, 1},    // far
                                         {1, 1},     // they begin in the growth's round
                                         {0, 1}}) {  // they have begun
    INFO("newcomers begin in round " << begins);
    Simulation run(3, 1, true, 100);
    for (int w = 0; w < 3; ++w) {
      run.worker(w).agreement->note_newcomers(1, begins);
      run.train(w);  // begins its first round
    }
    run.worker(2).agreement->request(Request::stop);
    while (!run.over()) {
      for (int w = 0; w < 3; ++w) {
        run.tick(w);
        run.train(w);
      }
    }
    for (const Simulation::Worker& one : run.workers()) {
      CHECK(one.made == expected);
      CHECK(one.saves == std::vector<std::int64_t>{expected});
    }
  }
}

TEST_CASE(
    "a stop before the growth is not put off, a stop after it is, also by a worker before it") {
  constexpr std::int64_t grown_in = 5, begins = 9;
  for (const auto& [furthest, expected] :
       {std::pair<std::int64_t, std::int64_t>{4, 4}, {5, 9}, {7, 9}, {9, 9}, {12, 12}}) {
    INFO("the furthest worker is in round " << furthest);
    Simulation run(2, 1, true, 100);
    for (Simulation::Worker& one : run.workers()) {
      one.agreement->note_newcomers(grown_in, begins);
      one.agreement->turn(0, 2);  // begins round 1
    }
    for (std::int64_t made = 1; made < furthest; ++made)  // with local steps
      run.worker(1).agreement->turn(made, 2);
    run.worker(1).agreement->request(Request::stop);
    for (int k = 0; k < 3; ++k) {
      for (const int w : {1, 0}) run.tick(w);  // worker 0 settles
    }
    for (const Simulation::Worker& one : run.workers())
      CHECK(one.agreement->round_of(Request::stop) == expected);
  }
}

TEST_CASE("a checkpoint is put off to the round in which newcomers begin, too") {
  Simulation run(3, 1, true, 30);
  for (int w = 0; w < 3; ++w) {
    run.worker(w).agreement->note_newcomers(0, 15);
    run.train(w);
  }
  run.worker(1).agreement->request(Request::save);
  while (!run.over()) {
    for (int w = 0; w < 3; ++w) {
      run.tick(w);
      run.train(w);
    }
  }
  for (const Simulation::Worker& one : run.workers())
    CHECK(one.saves == std::vector<std::int64_t>{15});
}

TEST_CASE("all stop in one round that none has passed, whoever was asked and however slow one is") {
  const std::uint64_t seed = test_seed(51);
  for (std::uint64_t k = 0; k < 300; ++k) {
    INFO("FAST_TEST_SEED=" << seed << ", run " << k);
    Rng rng(mix_seed(seed, k, 0));
    const int workers = static_cast<int>(1 + rng.below(9)),
              hosts = static_cast<int>(1 + rng.below(3));
    Simulation run(workers, std::min(hosts, workers), true, 1'000'000);
    const int slow = static_cast<int>(rng.below(static_cast<std::size_t>(workers)));
    const std::size_t asked_at = rng.below(3000);
    std::int64_t furthest = 0;
    for (std::size_t t = 0; t < 400'000 && !run.over(); ++t) {
      if (t == asked_at) {
        run.worker(static_cast<int>(rng.below(static_cast<std::size_t>(workers))))
            .agreement->request(Request::stop);
      }
      // A checkpoint is called for again and again: that must not take the place of the stop.
      if (rng.below(200) == 0) {
        run.worker(static_cast<int>(rng.below(static_cast<std::size_t>(workers))))
            .agreement->request(Request::save);
      }
      step(run, rng, slow);
      furthest = run.furthest();
    }
    REQUIRE(run.over());
    for (auto& one : run.workers()) {
      CHECK(one.stopped);
      CHECK(one.made == run.worker(0).made);
      CHECK(one.saves == run.worker(0).saves);
      CHECK(one.made == furthest);
      CHECK(std::is_sorted(one.saves.begin(), one.saves.end()));
    }
  }
}

TEST_CASE("checkpoints and a stop are agreed on without those that have died, worker 0 too") {
  const std::uint64_t seed = test_seed(52);
  for (std::uint64_t k = 0; k < 200; ++k) {
    INFO("FAST_TEST_SEED=" << seed << ", run " << k);
    Rng rng(mix_seed(seed, k, 1));
    const int workers = static_cast<int>(3 + rng.below(6));
    Simulation run(workers, 1, true, 1'000'000);
    std::set<int> dead = {0, static_cast<int>(rng.below(static_cast<std::size_t>(workers)))};
    const std::size_t dies_at = rng.below(2000);
    const int asked = workers - 1 - (dead.contains(workers - 1) ? 1 : 0);
    dead.erase(asked);
    for (std::size_t t = 0; t < 400'000 && !run.over(); ++t) {
      if (t == dies_at) {
        for (const int w : dead) run.worker(w).alive = false;
      }
      if (t == 4000) run.worker(asked).agreement->request(Request::save);
      if (t == 20'000) run.worker(asked).agreement->request(Request::stop);
      step(run, rng, -1);
    }
    REQUIRE(run.over());
    for (int w = 0; w < workers; ++w) {
      if (dead.contains(w)) continue;
      CHECK(run.worker(w).stopped);
      CHECK(run.worker(w).made == run.worker(asked).made);
      CHECK(run.worker(w).saves == run.worker(asked).saves);
      CHECK(run.worker(w).saves.size() == 2);
    }
  }
}

TEST_CASE("all lower the rate in the same rounds, whoever is slow, and if worker 0 dies") {
  const std::uint64_t seed = test_seed(54);
  std::int64_t lowered = 0;
  for (std::uint64_t k = 0; k < 300; ++k) {
    INFO("FAST_TEST_SEED=" << seed << ", run " << k);
    Rng rng(mix_seed(seed, k, 3));
    const int workers = static_cast<int>(1 + rng.below(9));
    const bool dies = workers > 2 && rng.below(2) == 0;
    const int hosts = dies ? 1 : std::min(static_cast<int>(1 + rng.below(3)), workers);
    Simulation run(workers, hosts, true, 300);
    run.epoch = static_cast<std::int64_t>(1 + rng.below(20));
    const int slow = static_cast<int>(rng.below(static_cast<std::size_t>(workers)));
    const std::size_t dies_at = rng.below(20'000);
    Simulation::Worker& first = run.worker(0);
    for (std::size_t t = 0; t < 2'000'000 && !run.over(); ++t) {
      if (dies && t == dies_at) first.alive = false;
      if (first.alive && !first.ended && rng.below(500) == 0)
        first.agreement->lower(1 + (first.reductions.empty() ? 0 : first.reductions.back()));
      if (rng.below(2000) == 0) run.worker(workers - 1).agreement->request(Request::save);
      step(run, rng, slow);
    }
    REQUIRE(run.over());
    for (Simulation::Worker& one : run.workers()) {
      const std::size_t both = std::min(one.reductions.size(), run.worker(slow).reductions.size());
      for (std::size_t round = 0; round < both; ++round)
        REQUIRE(one.reductions[round] == run.worker(slow).reductions[round]);
      for (std::size_t round = 1; round < one.reductions.size(); ++round) {
        const std::int64_t more = one.reductions[round] - one.reductions[round - 1];
        REQUIRE((more == 0 || more == 1));
        CHECK((more == 0 || workers == 1 || round % static_cast<std::size_t>(run.epoch) == 0));
      }
      lowered += one.reductions.back();
    }
  }
  CHECK(lowered > 1000);
}

TEST_CASE("a stop as the run ends finds all workers stopped, or all done") {
  const std::uint64_t seed = test_seed(53);
  int stopped = 0, done = 0;
  for (std::uint64_t k = 0; k < 300; ++k) {
    INFO("FAST_TEST_SEED=" << seed << ", run " << k);
    Rng rng(mix_seed(seed, k, 2));
    const int workers = static_cast<int>(1 + rng.below(6));
    Simulation run(workers, 1, true, 20);
    const std::size_t asked_at = rng.below(600);
    for (std::size_t t = 0; t < 200'000 && !run.over(); ++t) {
      if (t == asked_at) run.worker(0).agreement->request(Request::stop);
      step(run, rng, -1);
    }
    REQUIRE(run.over());
    for (auto& one : run.workers()) CHECK(one.stopped == run.worker(0).stopped);
    (run.worker(0).stopped ? stopped : done) += 1;
    CHECK(RunRecords(run.worker(0).part->coordinator->board()).any_has_come_to(Stage::stopped) ==
          run.worker(0).stopped);
  }
  CHECK(stopped > 20);
  CHECK(done > 20);
}

TEST_CASE("a worker that ended before a round has no state of it, unless a stop is asked for") {
  for (const bool exact : {true, false}) {
    Simulation run(3, 1, exact, 100);
    const RunAgreement& other = *run.worker(1).agreement;
    CHECK_FALSE(other.has_ended_before(100));
    run.worker(0).agreement->end(Stage::done, 5);
    CHECK_FALSE(other.has_ended_before(5));
    CHECK(other.has_ended_before(6) == exact);
    run.worker(2).agreement->end(Stage::left, 3);
    CHECK_FALSE(other.has_ended_before(5));
    run.worker(1).agreement->request(Request::stop);
    CHECK_FALSE(other.has_ended_before(6));
  }
}

TEST_CASE("stale workers stop where they are, and save under one name") {
  const std::uint64_t seed = test_seed(54);
  for (std::uint64_t k = 0; k < 200; ++k) {
    INFO("FAST_TEST_SEED=" << seed << ", run " << k);
    Rng rng(mix_seed(seed, k, 3));
    const int workers = static_cast<int>(2 + rng.below(6));
    Simulation run(workers, 1, false, 1'000'000);
    const int slow = static_cast<int>(rng.below(static_cast<std::size_t>(workers)));
    for (std::size_t t = 0; t < 400'000 && !run.over(); ++t) {
      if (t == 2000) run.worker(slow).agreement->request(Request::save);
      if (t == 6000) run.worker(slow).agreement->request(Request::stop);
      step(run, rng, slow);
    }
    REQUIRE(run.over());
    for (auto& one : run.workers()) {
      CHECK(one.saves == run.worker(0).saves);
      CHECK(one.agreement->round_of(Request::stop) ==
            run.worker(0).agreement->round_of(Request::stop));
    }
    CHECK(run.worker(slow).made < run.furthest() / 2);
  }
}

TEST_CASE("stale workers that have ended save what the others ask for, under names that grow") {
  const std::uint64_t seed = test_seed(56);
  constexpr std::int64_t rounds = 40;
  int after_the_end = 0;
  for (std::uint64_t k = 0; k < 100; ++k) {
    INFO("FAST_TEST_SEED=" << seed << ", run " << k);
    Rng rng(mix_seed(seed, k, 4));
    const int workers = static_cast<int>(2 + rng.below(6));
    Simulation run(workers, 1, false, rounds);
    const int slow = static_cast<int>(rng.below(static_cast<std::size_t>(workers)));
    for (std::size_t t = 0; t < 400'000 && !run.over(); ++t) {
      if (!run.worker(slow).ended && rng.below(500) == 0)
        run.worker(slow).agreement->request(Request::save);
      step(run, rng, slow);
      // Rarely, so that the others have time for more than one checkpoint.
      Simulation::Worker& any = run.worker(static_cast<int>(rng.below(run.workers().size())));
      if (any.ended && rng.below(300) == 0) Simulation::save_again(any);
    }
    REQUIRE(run.over());
    for (auto& one : run.workers()) {
      Simulation::save_again(one);  // what was settled just before the last one ended
      CHECK(one.saves == run.worker(0).saves);
      CHECK(std::adjacent_find(one.saves.begin(), one.saves.end(), std::greater_equal<>()) ==
            one.saves.end());
    }
    for (const std::int64_t name : run.worker(slow).saves) after_the_end += name > rounds ? 1 : 0;
  }
  CHECK(after_the_end > 100);
}

TEST_CASE("workers that are all stopped for a while do not take each other for dead") {
  Simulation run(3, 1, true, 1'000'000);
  Rng rng(55);
  for (int t = 0; t < 2000; ++t) step(run, rng, -1);
  run.worker(1).agreement->request(Request::stop);
  // Worker 1 alone continues at first. A long pause counts as one tick.
  for (int t = 0; t < 40; ++t) run.worker(1).part->tick(Seconds(0.2));
  CHECK(run.worker(1).agreement->is_open());
  for (int t = 0; t < 100'000 && !run.over(); ++t) step(run, rng, -1);
  CHECK(run.over());
  CHECK(run.worker(0).made == run.worker(2).made);
}

TEST_CASE("ranks that take no part are not waited for, and join the requests that come later") {
  testing::Records memory(3);
  std::vector<std::unique_ptr<Part>> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.push_back(std::make_unique<Part>(memory, rank, 2));
  const auto of = [&](int rank) -> RunAgreement& {
    return ranks[static_cast<std::size_t>(rank)]->agreement;
  };
  const auto tick_all = [&] {
    for (int k = 0; k < 3; ++k)
      for (auto& rank : ranks) rank->tick();
  };
  for (int rank : {0, 1}) CHECK(of(rank).turn(4, 0) == RoundDecision::go);
  of(0).request(Request::save);
  tick_all();
  for (int rank : {0, 1}) {
    REQUIRE(of(rank).turn(5, 0) == RoundDecision::save);
    CHECK(of(rank).round_of(Request::save) == 5);
    of(rank).saved();
    CHECK(of(rank).turn(5, 0) == RoundDecision::go);
  }
  // A worker that joins in that round saves, too.
  {
    Part joins(memory, 2, 2);
    joins.agreement.join(5 - 1);
    CHECK(joins.agreement.turn(5, 0) == RoundDecision::save);
  }
  // The spare begins in round 9: the checkpoint of round 5 is not its own, the next one is.
  SeatRecords spare = memory.seats_of(2);
  spare.set_claim({.version = 1, .seat = 1, .phase = SeatClaim::Phase::seated});
  spare.set_status(WorkerStatus::running);
  of(2).join(9);
  CHECK(of(2).turn(9, 0) == RoundDecision::go);
  for (int rank : {0, 1}) CHECK(of(rank).turn(9, 0) == RoundDecision::go);
  of(1).request(Request::save);
  tick_all();
  CHECK(of(2).turn(10, 0) == RoundDecision::save);
}

TEST_CASE("workers that wait before a round stop there, also before the first round") {
  for (const std::int64_t made : {0, 3}) {
    testing::Records memory(2);
    std::vector<std::unique_ptr<Part>> workers;
    for (int w = 0; w < 2; ++w) {
      RunAgreement& one = workers.emplace_back(std::make_unique<Part>(memory, w, 2))->agreement;
      for (std::int64_t round = 0; round < made; ++round)
        REQUIRE(one.turn(round, 0) == RoundDecision::go);
      one.wait(made);
    }
    workers[1]->agreement.request(Request::stop);
    for (int i = 0; i < 4; ++i) {
      CHECK((i > 1 || !workers[0]->agreement.stop_is_settled()));
      workers[static_cast<std::size_t>(i % 2)]->tick();
    }
    workers[0]->tick();
    REQUIRE(workers[0]->agreement.stop_is_settled());
    for (const auto& worker : workers)
      CHECK(worker->agreement.turn(made, 0) == RoundDecision::stop);
  }
}

TEST_CASE(
    "a checkpoint that is asked for while the worker waits is of this round, and comes once") {
  testing::Records memory(1);
  Part part(memory, 0, 1);
  RunAgreement& worker = part.agreement;
  for (std::int64_t round = 0; round < 3; ++round)
    REQUIRE(worker.turn(round, 500) == RoundDecision::go);
  worker.wait(3);
  worker.request(Request::save);
  part.tick();
  REQUIRE(worker.save_is_due(3));
  CHECK(worker.round_of(Request::save) == 3);
  worker.request(Request::save);  // it is to come
  part.tick();
  worker.saved();
  part.tick();
  CHECK_FALSE(worker.save_is_due(3));
  CHECK(worker.turn(3, 500) == RoundDecision::go);
  worker.request(Request::save);  // another one
  part.tick();
  CHECK(worker.round_of(Request::save) > 3);
}
