#include "worker/combiner.hpp"

#include <algorithm>

#include "worker/phase_timer.hpp"

namespace fast::worker {
namespace {

constexpr int most_passes = 3;

/// Rules that only average, over host memory, at any staleness.
class AveragingCombiner final : public Combiner {
 public:
  explicit AveragingCombiner(const Context& context) : Combiner(context) {}

  bool reads_early() const override {
    const WorkerConfig& setting = worker_.setting;
    return setting.exact() && setting.fused() && setting.shape.scalars == 0 &&
           setting.options.codec.kind == codec::Kind::identity && !worker_.mixer.takes_updates() &&
           combine::BlockSources::may_arrive(worker_.mixer.layout());
  }
  bool combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
               const algorithm::RoundInfo& info) override {
    const bool fused = worker_.setting.fused();
    const MutablePayload next = fused ? acquire() : MutablePayload{};
    WorkerStats& stats = worker_.progress.stats;
    const PhaseTimer timer(worker_, Phase::mix, stats.mix_s);
    combine::BlockSources sources(worker_.exchange, arrivals, round.row, info.round,
                                  worker_.setting.exact());
    const bool counts = worker_.mixer.combine(sources, info, fused ? &next : nullptr);
    stats.rejected += sources.rejected();
    stats.wait_s += sources.waited_s();
    stats.mix_s -= sources.waited_s();
    return counts;
  }
};

/// Other rules at staleness 0: published slots do not change before this worker has completed the
/// round.
class ExactCombiner final : public Combiner {
 public:
  explicit ExactCombiner(const Context& context) : Combiner(context) {}

  bool combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
               const algorithm::RoundInfo& info) override {
    const bool fused = worker_.setting.fused();
    const MutablePayload next = fused ? acquire() : MutablePayload{};
    const double epoch = std::max(least_epoch_, memory_.epoch_after(arrivals, round));
    const bool restarts = epoch != worker_.mixer.scalars().epoch();
    if (restarts) worker_.mixer.restart(epoch);
    if (!restarts || worker_.setting.traits.topology.divides()) {
      const PhaseTimer timer(worker_, Phase::mix, worker_.progress.stats.mix_s);
      combine::Neighborhood near = memory_.neighborhood(arrivals, round);
      algorithm::RoundInfo now = info;
      now.restarts = restarts;
      if (restarts) near.self_weight = 0;  // this worker's own message is of the epoch before
      worker_.mixer.combine(near, now, fused ? &next : nullptr);
    }
    return std::all_of(arrivals.begin(), arrivals.end(), [&](const Arrival& arrival) {
      return !is_present(arrival) || worker_.exchange.is_intact(arrival);
    });
  }
};

/// Other rules above staleness 0: a slot may be written to while it is read. What was read is
/// checked, and read again, at most three times, before it is used.
class OptimisticCombiner final : public Combiner {
 public:
  explicit OptimisticCombiner(const Context& context) : Combiner(context) {}

  bool combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
               const algorithm::RoundInfo& info) override {
    const double epoch = gather(arrivals, round, info.round);
    const bool fused = worker_.setting.fused();
    const MutablePayload next = fused ? acquire() : MutablePayload{};
    if (epoch != worker_.mixer.scalars().epoch()) {
      worker_.mixer.restart(epoch);  // the next round takes the sums of the new epoch, too
      return true;
    }
    const PhaseTimer timer(worker_, Phase::mix, worker_.progress.stats.mix_s);
    worker_.mixer.combine_gathered(worker_.exchange.published(), info, fused ? &next : nullptr);
    return true;
  }

 private:
  /// Reads until all that was read is whole. Returns the epoch after that.
  double gather(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
                std::int64_t number) {
    double epoch = std::max(least_epoch_, worker_.mixer.scalars().epoch());
    for (int pass = 1;; ++pass) {
      {
        const PhaseTimer timer(worker_, Phase::mix, worker_.progress.stats.mix_s);
        worker_.mixer.gather(memory_.neighborhood(arrivals, round));
        epoch = std::max(epoch, memory_.epoch_after(arrivals, round));
      }
      const std::vector<std::size_t> torn = torn_of(arrivals);
      if (torn.empty()) return epoch;
      ++worker_.progress.stats.rejected;
      const bool again = pass < most_passes;
      const auto newer = again ? worker_.exchange.fetch(number) : std::vector<Arrival>{};
      for (const std::size_t k : torn) {
        if (again) {
          arrivals[k] = newer[k];
        } else {
          arrivals[k].state = Arrival::State::torn;
        }
      }
    }
  }

  /// Those that have changed while they were read.
  std::vector<std::size_t> torn_of(const std::vector<Arrival>& arrivals) const {
    std::vector<std::size_t> torn;
    for (std::size_t k = 0; k < arrivals.size(); ++k) {
      if (is_present(arrivals[k]) && !worker_.exchange.is_intact(arrivals[k])) torn.push_back(k);
    }
    return torn;
  }
};

}  // namespace

MutablePayload Combiner::acquire() {
  const PhaseTimer timer(worker_, Phase::wait, worker_.progress.stats.wait_s);
  return worker_.exchange.acquire();
}

std::unique_ptr<Combiner> make_combiner(const Context& context) {
  if (context.setting.traits.plain_average && !context.options().accelerator)
    return std::make_unique<AveragingCombiner>(context);
  if (context.setting.exact()) return std::make_unique<ExactCombiner>(context);
  return std::make_unique<OptimisticCombiner>(context);
}

}  // namespace fast::worker
