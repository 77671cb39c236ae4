// Agreements of simulated workers: which shares are in force in which epoch, however training,
// ticks and news interleave.
#include "train/balance/share_agreement.hpp"

#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include "exchange/open_coordinator.hpp"
#include "membership/hall.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using namespace fast::train;

namespace {

constexpr std::size_t mean_batch = 20;
constexpr int share_epochs = 12, share_rounds = 6, share_measured = 3;

/// Workers that wait for nobody but in may_begin(): as with an unbounded staleness.
class ShareRun {
 public:
  ShareRun(int workers, int hosts, double silent_after_s) : hosts_(hosts), workers_(at(workers)) {
    for (int host = 0; host < hosts; ++host)
      memory_.push_back(std::make_unique<testing::Records>(workers, workers));
    for (int w = 0; w < workers; ++w) {
      Worker& one = workers_[at(w)];
      one.shares = Shares::even(workers, mean_batch);
      one.coordinator = memory_[at(w % hosts)]->coordinator(w);
      one.agreement = std::make_unique<ShareAgreement>(
          one.coordinator, *one.shares,
          ShareAgreement::Options{.batch_size = mean_batch,
                                  .silent_after = Seconds(silent_after_s)});
      one.seconds = 1 + w % 4;
    }
  }

  struct Worker {
    std::shared_ptr<membership::Coordinator> coordinator;
    std::unique_ptr<ShareAgreement> agreement;
    std::optional<Shares> shares;
    double seconds = 1;
    int epoch = -1, round = share_rounds;
    bool alive = true, ended = false;
  };

  int size() const { return static_cast<int>(workers_.size()); }
  Worker& worker(int w) { return workers_[at(w)]; }

  void tick(int w) {
    if (worker(w).alive) worker(w).coordinator->tick(Seconds(0.1));
  }

  void tell(int from, int to) {
    if (!worker(from).alive || !worker(to).alive) return;
    const membership::RecordBoard& source = worker(from).coordinator->board();
    std::vector<std::uint64_t> words(source.words_of_all());
    std::vector<bool> here;
    for (int w = 0; w < size(); ++w) here.push_back(w % hosts_ == to % hosts_);
    source.copy_to(words);
    worker(to).coordinator->board().take_over(words, here);
  }

  /// A round, or the beginning of the next epoch, if the worker may begin it.
  void train(int w) {
    Worker& one = worker(w);
    if (!one.alive || one.ended) return;
    ShareAgreement& agreement = *one.agreement;
    if (one.round < share_rounds) {
      ++one.round;
      if (one.round == share_measured && !agreement.has_measured())
        agreement.measured(one.epoch, one.seconds);
      return;
    }
    if (one.epoch + 1 == share_epochs) {
      membership::RunRecords(one.coordinator->board()).end(membership::Stage::done, one.epoch);
      one.ended = true;
      return;
    }
    if (one.epoch >= 0 && !agreement.has_measured()) agreement.measured(one.epoch, one.seconds);
    if (!agreement.may_begin(one.epoch + 1)) return;
    ++one.epoch;
    one.round = 0;
    if (auto shares = agreement.take(one.epoch)) one.shares = std::move(shares);
    used_[one.epoch].push_back(*one.shares);
  }

  bool is_over() const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const Worker& one) { return one.ended || !one.alive; });
  }

  /// By epoch, of the workers that have begun it.
  const std::map<int, std::vector<Shares>>& used() const { return used_; }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  int hosts_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<testing::Records>> memory_;
  std::map<int, std::vector<Shares>> used_;
};

void check_shares_of_epochs(const ShareRun& run) {
  for (const auto& [epoch, shares] : run.used()) {
    CAPTURE(epoch);
    for (const Shares& each : shares) REQUIRE(each.text() == shares.front().text());
    std::size_t all = 0;
    for (int w = 0; w < shares.front().workers(); ++w) all += shares.front().of(w).batch_size;
    REQUIRE(all == mean_batch * static_cast<std::size_t>(shares.front().workers()));
  }
}

void make_share_steps(ShareRun& run, Rng& rng, int steps) {
  for (int step = 0; step < steps && !run.is_over(); ++step) {
    const auto any = [&] {
      return static_cast<int>(rng.below(static_cast<std::uint64_t>(run.size())));
    };
    for (int w = 0; w < run.size(); ++w) run.tick(w);
    run.tell(any(), any());
    // Some train far more often than others.
    run.train(std::min(any(), any()));
    run.train(any());
  }
}

}  // namespace

TEST_CASE("all workers have the same shares in the same epoch, on one host and on several") {
  const std::uint64_t seed = test_seed(17);
  CAPTURE(seed);
  Rng rng(seed);
  for (int trial = 0; trial < 60; ++trial) {
    const int workers = 1 + static_cast<int>(rng.below(6));
    const int hosts = 1 + static_cast<int>(rng.below(3));
    CAPTURE(trial, workers, hosts);
    ShareRun run(workers, hosts, 1e9);
    make_share_steps(run, rng, 200000);
    REQUIRE(run.is_over());
    check_shares_of_epochs(run);
    if (workers < 2) continue;
    // Workers take 1, 2, 3, ... seconds: the first division is known, and in force soon.
    std::vector<double> speeds;
    for (int w = 0; w < workers; ++w) speeds.push_back(1 / run.worker(w).seconds);
    CHECK(run.used().at(3).front() == Shares::in_proportion(speeds, mean_batch));
  }
}

TEST_CASE("workers that die keep nobody waiting, and the others take their samples") {
  const std::uint64_t seed = test_seed(23);
  CAPTURE(seed);
  Rng rng(seed);
  for (int trial = 0; trial < 40; ++trial) {
    const int workers = 2 + static_cast<int>(rng.below(5));
    const int dead = static_cast<int>(rng.below(static_cast<std::uint64_t>(workers)));
    CAPTURE(trial, workers, dead);
    ShareRun run(workers, 1, 5);
    make_share_steps(run, rng, static_cast<int>(rng.below(60)));
    run.worker(dead).alive = false;
    make_share_steps(run, rng, 200000);
    REQUIRE(run.is_over());
    check_shares_of_epochs(run);
    const Shares last = run.used().at(share_epochs - 1).front();
    for (int w = 0; w < workers; ++w) CHECK(last.is_away(w) == (w == dead));
  }
}

TEST_CASE("a worker that is suspended keeps nobody waiting, and gets its part back") {
  Rng rng(5);
  ShareRun run(3, 1, 5);
  make_share_steps(run, rng, 10);
  run.worker(1).alive = false;
  while (run.worker(0).epoch < 4) make_share_steps(run, rng, 1);
  CHECK(run.used().at(4).front().is_away(1));
  run.worker(1).alive = true;
  run.worker(1).epoch = 4;  // it goes on where the others are
  run.worker(1).round = share_rounds;
  make_share_steps(run, rng, 200000);
  REQUIRE(run.is_over());
  check_shares_of_epochs(run);
  CHECK_FALSE(run.used().at(share_epochs - 1).front().is_away(1));
}

TEST_CASE("nobody waits for a worker that is several divisions behind") {
  Rng rng(6);
  ShareRun run(3, 1, 5);
  make_share_steps(run, rng, 10);
  run.worker(1).alive = false;
  while (run.worker(0).epoch < 6) make_share_steps(run, rng, 1);
  run.worker(1).alive = true;  // it still has its old epochs to train
  for (int step = 0; step < 2000; ++step) {
    for (int w = 0; w < 3; ++w) run.tick(w);
    run.train(0);
    run.train(2);
  }
  CHECK(run.worker(0).ended);
  CHECK(run.worker(2).ended);
  CHECK_FALSE(run.worker(1).ended);
}

namespace {

constexpr std::size_t batch_size = 14;

/// Collective. One worker's part, among threads.
struct Division {
  explicit Division(const Group& group, Seconds deadline = Seconds(30))
      : coordinator(exchange::coordinator_of_run(group, membership::record_format(group.size()),
                                                 Deadline(Seconds(30)))),
        shares(coordinator, Shares::even(group.size(), batch_size),
               {.batch_size = batch_size, .silent_after = Seconds(20), .deadline = deadline}) {}
  void end(membership::Stage stage) const {
    membership::RunRecords(coordinator->board()).end(stage, 1);
  }
  std::shared_ptr<membership::Coordinator> coordinator;
  ShareAgreement shares;
};

}  // namespace

TEST_CASE("workers that say how fast they are get shares of that speed, all the same") {
  for (const int workers : {3, 5}) {
    const std::vector<double> seconds{1, 2, 4, 2, 1};
    std::vector<double> speeds;
    for (int w = 0; w < workers; ++w) speeds.push_back(1 / seconds[static_cast<std::size_t>(w)]);
    const Shares right = Shares::in_proportion(speeds, batch_size);
    std::vector<std::optional<Shares>> got(static_cast<std::size_t>(workers));
    local::run(workers, [&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      Division division(group);
      CHECK_FALSE(division.shares.begin_epoch(0));
      CHECK_FALSE(division.shares.has_measured());
      division.shares.measured(0, seconds[rank]);
      CHECK(division.shares.has_measured());
      got[rank] = division.shares.begin_epoch(1);
      CHECK_FALSE(division.shares.has_measured());
      division.shares.measured(1, seconds[rank]);
      CHECK(division.shares.begin_epoch(2) == right);  // they are as before
      division.end(membership::Stage::done);
    });
    for (const auto& each : got) CHECK(each == right);
  }
}

TEST_CASE("no worker waits for one that has left, or after one that has made its last epoch") {
  local::run(3, [&](const Group& group) {
    Division division(group);
    if (group.rank() == 0) return division.end(membership::Stage::left);
    division.shares.measured(0, 1);
    const auto shares = division.shares.begin_epoch(1);
    REQUIRE(shares);
    CHECK(shares->batches() == std::vector<std::size_t>{0, 21, 20});
    if (group.rank() == 1) return division.end(membership::Stage::done);
    division.shares.measured(1, 1);
    CHECK_FALSE(division.shares.begin_epoch(2));
  });
}

TEST_CASE("a worker that never measures is an error at the deadline") {
  const auto wait = [&](const Group& group) {
    Division division(group, Seconds(0.2));
    if (group.rank() == 1) {
      division.shares.measured(0, 1);
      CHECK_THROWS_WITH(division.shares.begin_epoch(1), ContainsSubstring("before epoch 2"));
    }
    group.barrier(Deadline(Seconds(30)), "both have ended");
  };
  local::run(2, wait);
}

TEST_CASE("the deadline begins again with each round of another worker") {
  constexpr Seconds deadline(2);
  const auto wait = [&](const Group& group) {
    Division division(group, deadline);
    if (group.rank() == 1) {
      division.shares.measured(0, 1);
      const auto began = std::chrono::steady_clock::now();
      CHECK(division.shares.begin_epoch(1));
      CHECK(std::chrono::steady_clock::now() - began > deadline);
    } else {  // a slow worker
      for (const Deadline slow(2 * deadline); !slow.expired();) {
        division.shares.count_round();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      division.shares.measured(0, 1);
      CHECK(division.shares.begin_epoch(1));
    }
    group.barrier(Deadline(Seconds(30)), "both have shares");
  };
  local::run(2, wait);
}
