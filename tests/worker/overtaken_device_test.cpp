// Workers on devices that run late, while a neighbor goes on without them: what they make of
// messages that change meanwhile counts for nobody.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/host_accelerator.hpp"
#include "support/seed.hpp"
#include "worker/quick.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

constexpr int late_workers = 3, fast_worker = 1;
constexpr double late_weight = 1.0 / late_workers;  // of a ring of three

struct LatePlan {
  std::string rule = "awc";
  std::int64_t staleness = 0;
  Sharing sharing;
  int stretches = 3;  ///< in which worker 1 waits for nobody
  std::uint64_t seed = 0;

  std::string text() const {
    return fmt::format("{} at staleness {}, {}, seed {}", rule, staleness,
                       sharing.on_host ? "mapped" : "staged", seed);
  }
};

int late_below(Rng& rng, int count) {
  return static_cast<int>(rng.below(static_cast<std::uint64_t>(count)));
}

LatePlan drawn_late_plan(Rng& rng) {
  LatePlan plan;
  plan.rule = late_below(rng, 2) == 0 ? "awc" : "atc";
  plan.staleness = late_below(rng, 3) == 0 ? 1 + late_below(rng, 2) : 0;
  plan.sharing = {.on_host = late_below(rng, 3) > 0, .on_all = true};
  plan.seed = rng.below(1'000'000);
  return plan;
}

double late_drift(int rank) { return 1.0 + 0.37 * rank * rank; }

/// All elements of a worker's tensors are alike, in every round.
class AlikeModel {
 public:
  AlikeModel(int rank, const std::shared_ptr<HostAccelerator>& accelerator)
      : queue_(accelerator->program_queue()), device_(accelerator->device()) {
    for (std::size_t k = 0; k < counts_.size(); ++k)
      memory_.push_back(accelerator->work()->allocate(counts_[k] * sizeof(double)));
    queue_->enqueue([views = views(), rank] {
      for (const TensorView& view : views)
        std::fill_n(static_cast<double*>(view.data), view.element_count(), 100.0 * rank);
    });
    queue_->settle();
  }
  std::vector<TensorView> views() const {
    std::vector<TensorView> views;
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      views.push_back({.name = fmt::format("x{}", k),
                       .data = memory_[k].get(),
                       .shape = {static_cast<std::int64_t>(counts_[k])},
                       .dtype = DType::f64,
                       .device = device_});
    }
    return views;
  }
  void* queue() const { return queue_.get(); }
  void step(int rank) {
    queue_->enqueue([views = views(), rank] {
      for (const TensorView& view : views) {
        auto* x = static_cast<double*>(view.data);
        for (std::size_t e = 0; e < view.element_count(); ++e) x[e] += late_drift(rank);
      }
    });
  }
  /// NaN if they are not alike.
  double value() {
    std::vector<std::vector<double>> found;
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      found.emplace_back(counts_[k]);
      queue_->copy(reinterpret_cast<std::byte*>(found[k].data()), memory_[k].get(),
                   counts_[k] * sizeof(double));
    }
    queue_->settle();
    const double first = found[0][0];
    for (const auto& tensor : found)
      for (const double x : tensor)
        if (x != first) return NAN;
    return first;
  }

 private:
  std::vector<std::size_t> counts_{1500, 37};
  std::shared_ptr<HostDeviceWork> queue_;
  Device device_;
  std::vector<std::shared_ptr<std::byte>> memory_;
};

/// What a worker did in a round.
struct LateRound {
  double before = 0, after = 0;
  bool rejoined = false;
  std::vector<std::pair<int, std::uint64_t>> read{};  ///< worker and publication
};

struct LateLog {
  std::vector<LateRound> rounds;
  std::map<std::uint64_t, double> sent;  ///< by publication
};

/// Of one worker, on its thread.
class Reading final : public Observer {
 public:
  void on_message(const MessageEvent& event) noexcept override {
    if (event.kind == MessageEvent::Kind::read)
      read.emplace_back(event.from, event.sequence);
    else
      published.push_back(event.sequence);
  }
  std::vector<std::pair<int, std::uint64_t>> read;
  std::vector<std::uint64_t> published;
};

class LateRun {
 public:
  explicit LateRun(const LatePlan& plan) : plan_(plan), logs_(late_workers) {}

  std::vector<LateLog> made() {
    local::run(late_workers, [this](const Group& group) { work(group); });
    return std::move(logs_);
  }

 private:
  static constexpr std::int64_t rounds_between = 6;

  Rng rng_of(int rank, std::uint64_t use) const {
    return Rng(mix_seed(plan_.seed, static_cast<std::uint64_t>(rank), use));
  }
  /// Worker 1's stretches take that long.
  static std::int64_t length(Rng& rng) { return 2 + late_below(rng, 10); }

  /// A device does what was asked for when worker 1 is so many rounds further, or waits again.
  void be_late(Rng& rng) {
    ++waits_;
    if (late_below(rng, 3) > 0) return;
    const std::int64_t until = rounds_ + late_below(rng, 5);
    // Worker 1 may still wait for this one.
    for (int spin = 0; is_alone_ && rounds_ < until && spin < 16; ++spin) std::this_thread::yield();
  }
  /// Lets the others come to some more waits, if they do.
  void dawdle(Rng& rng) const {
    const std::int64_t until = waits_ + late_below(rng, 8);
    for (int spin = 0; waits_ < until && spin < 8; ++spin) std::this_thread::yield();
  }

  void work(const Group& group) {
    const int rank = group.rank();
    Rng late = rng_of(rank, 1), pace = rng_of(rank, 2);
    std::mutex mutex;
    const auto device = std::make_shared<HostAccelerator>(
        plan_.sharing, 4 << 20, mix_seed(plan_.seed, static_cast<std::uint64_t>(rank)));
    if (rank != fast_worker)
      device->simulated().late = [&] {
        const std::lock_guard lock(mutex);
        be_late(late);
      };
    AlikeModel model(rank, device);
    const auto seen = std::make_shared<Reading>();
    WorkerOptions options = quick();
    options.algorithm = algorithm::by_name(plan_.rule);
    options.staleness = plan_.staleness;
    options.accelerator = device;
    options.observer = seen;
    LateLog& log = logs_[static_cast<std::size_t>(rank)];
    double value = model.value();
    Worker worker(group, stencil::ring(), model.views(), options);
    for (const std::uint64_t first : seen->published) log.sent[first] = value;
    const auto make = [&] {
      const std::int64_t rejoined = worker.stats().rejoined;
      seen->read.clear();
      seen->published.clear();
      worker.begin_round();
      model.step(rank);
      worker.end_round({.learning_rate = 0.1, .queue = model.queue()});
      LateRound round{.before = value, .rejoined = worker.stats().rejoined != rejoined};
      round.after = value = model.value();
      round.read = seen->read;
      for (const std::uint64_t sequence : seen->published) {
        const bool is_stepped = plan_.rule == "atc" && sequence == seen->published.front();
        log.sent[sequence] = is_stepped ? round.before + late_drift(rank) : value;
      }
      log.rounds.push_back(std::move(round));
    };
    std::int64_t next = 0;
    for (int stretch = 0; stretch < plan_.stretches; ++stretch) {
      next += rounds_between;
      while (worker.round() < next) make();
      Rng common = rng_of(0, 100 + static_cast<std::uint64_t>(stretch));
      next += length(common);
      if (rank == fast_worker) go_alone(worker, next, pace, make);
      while (worker.round() < next) make();
    }
    while (worker.round() < next + rounds_between) make();
    worker.await_finish();
    for (const std::uint64_t last : seen->published) log.sent.emplace(last, value);
  }

  template <class Make>
  void go_alone(Worker& worker, std::int64_t until, Rng& pace, const Make& make) {
    worker.set_schedule(Topology("alone", std::vector<std::vector<int>>(late_workers)));
    is_alone_ = true;
    while (worker.round() < until) {
      make();
      ++rounds_;
      dawdle(pace);
    }
    is_alone_ = false;
    worker.set_schedule(stencil::ring());
  }

  LatePlan plan_;
  std::vector<LateLog> logs_;
  std::atomic<bool> is_alone_ = false;
  std::atomic<std::int64_t> rounds_ = 0;  ///< of worker 1, alone
  std::atomic<std::int64_t> waits_ = 0;   ///< for the others' devices
};

/// What a round makes of the publications that the worker says it has read.
double expected_late(const LatePlan& plan, const std::vector<LateLog>& logs, int rank,
                     const LateRound& round) {
  const double stepped = round.before + late_drift(rank);
  const double own = plan.rule == "atc" ? stepped : round.before;
  double after = stepped;
  for (const auto& [worker, sequence] : round.read) {
    const auto& sent = logs[static_cast<std::size_t>(worker)].sent;
    const auto found = sent.find(sequence);
    require(found != sent.end(), ErrorKind::internal, "worker {} has read {} of worker {}", rank,
            sequence, worker);
    after += late_weight * (found->second - own);
  }
  return after;
}

}  // namespace

TEST_CASE("a late device: rounds are made of the messages that the worker says, or do not count") {
  const std::uint64_t seed = test_seed(71);
  Rng rng(seed);
  int rejoined = 0, left_out = 0;
  for (int k = 0; k < 12; ++k) {
    const LatePlan plan = drawn_late_plan(rng);
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": " << plan.text());
    const std::vector<LateLog> logs = LateRun(plan).made();
    for (int rank = 0; rank < late_workers; ++rank) {
      const std::vector<LateRound>& rounds = logs[static_cast<std::size_t>(rank)].rounds;
      for (std::size_t r = 0; r + 1 < rounds.size(); ++r) {
        if (rounds[r].rejoined) ++rejoined;
        if (rounds[r].read.size() < late_workers - 1) ++left_out;
        if (rounds[r].rejoined || rounds[r + 1].rejoined) continue;  // it did not count
        INFO("worker " << rank << ", round " << r << " of those it made");
        REQUIRE(rounds[r].after ==
                Approx(expected_late(plan, logs, rank, rounds[r])).epsilon(1e-12));
      }
    }
  }
  fmt::print("{} rounds began anew, {} left a neighbor out\n", rejoined, left_out);
  INFO(rejoined << " rounds began anew, " << left_out << " left a neighbor out");
  CHECK(rejoined > 10);
  CHECK(left_out > 10);
}
