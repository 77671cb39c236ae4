#include "worker/round.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <utility>

#include "worker/context.hpp"

namespace fast::worker {
namespace {
/// At first all workers are taken to be there, whoever they are.
constexpr int anyone = -1;
}  // namespace

NeighborMemory::NeighborMemory(const Context& context)
    : worker_(context),
      met_(static_cast<std::size_t>(context.setting.group.everyone().size()), anyone) {}

/// `rank` is there for that worker; none: it is absent. What has changed since the last time.
NeighborMemory::Change NeighborMemory::meet(int worker, std::optional<int> rank) {
  const auto before = std::exchange(met_[static_cast<std::size_t>(worker)], rank);
  if (before == rank || (before == anyone && rank)) return Change::none;
  if (!rank) return Change::left;
  return before ? Change::other : Change::came;
}

/// The rank in that worker's place, as Arrival::rank has it: 0 where workers are ranks.
int NeighborMemory::rank_of(int worker) const {
  const auto& members = worker_.setting.members;
  return members ? members->map().holder(worker) : 0;
}

/// Whether any neighbor of the round has left, has come back or is another rank since the last time
/// that this worker met it.
NeighborMemory::Changes NeighborMemory::note(const std::vector<Arrival>& arrivals,
                                             const RoundEdges& edges) {
  Changes changes;
  for (const Arrival& arrival : arrivals) {
    const bool there = is_present(arrival) || arrival.state == Arrival::State::torn;
    const auto rank = there ? std::optional(arrival.rank) : std::nullopt;
    const Change change = meet(arrival.worker, rank);
    changes.any |= change != Change::none;
    changes.source_came |= change == Change::came;
  }
  if (!worker_.setting.traits.topology.divides()) return changes;
  for (const int reader : edges.destinations) {
    if (std::ranges::binary_search(edges.sources, reader)) continue;
    const Arrival::State state = worker_.exchange.look(reader, worker_.progress.combinations);
    const bool there = state == Arrival::State::present;
    const auto rank = there ? std::optional(rank_of(reader)) : std::nullopt;
    changes.any |= meet(reader, rank) != Change::none;
  }
  return changes;
}

double NeighborMemory::epoch_after(const std::vector<Arrival>& arrivals,
                                   const RoundPlan::Round& round) {
  const double own = worker_.mixer.scalars().epoch();
  if (!worker_.setting.traits.memory.remembers_neighbors) return own;
  const Changes changes = note(arrivals, round.edges);
  double heard = 0;
  bool any_present = false;
  for (const Arrival& arrival : arrivals) {
    if (!is_present(arrival)) continue;
    any_present = true;
    heard = std::max(heard, worker_.mixer.scalars().epoch_of(arrival.payload));
  }
  // What was sent in the neighbors' epoch before is lost to this worker: all begin another one.
  const bool left_out = any_present && std::exchange(left_out_rounds_, false);
  if (left_out || changes.source_came) heard += 1;
  return std::max(own + (changes.any ? 1 : 0), heard);
}

/// The shares of absent readers stay with this worker.
double NeighborMemory::kept_shares(const RoundPlan::Round& round) const {
  double kept = 0;
  for (std::size_t k = 0; k < round.shares.size(); ++k) {
    if (!met_[static_cast<std::size_t>(round.edges.destinations[k])]) kept += round.shares[k];
  }
  return kept;
}

combine::Neighborhood NeighborMemory::neighborhood(const std::vector<Arrival>& arrivals,
                                                   const RoundPlan::Round& round) const {
  auto near = combine::Neighborhood::none_of(round.row, worker_.exchange.published());
  near.self_weight += kept_shares(round);
  combine::Mixer& mixer = worker_.mixer;
  const bool sums = worker_.setting.sends_sums();
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    const Arrival& arrival = arrivals[k];
    if (sums && arrival.state == Arrival::State::torn) near.owed_weight += round.row.weights[k];
    if (!is_present(arrival)) continue;
    if (!sums && mixer.scalars().epoch_of(arrival.payload) != mixer.scalars().epoch()) continue;
    near.add(arrival, round.row, k);
    if (!round.vectors.empty()) near.edges.push_back(round.vectors[k]);
  }
  return near;
}

namespace {

constexpr int most_passes = 3;

/// Block by block, over host memory: rules that only average, at any staleness, and above 0 all
/// rules for which the blocks of a round may come from different publications of a neighbor. Not
/// for robust averaging, which reads whole publications twice.
class BlockCombiner final : public Combiner {
 public:
  explicit BlockCombiner(const Context& context) : Combiner(context) {}

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
    sources.rethrow();
    return counts;
  }
};

/// All others at staleness 0: published slots do not change before this worker has completed the
/// round. And all rules over the memory of a device: what they read above staleness 0 are copies.
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
      limit(near, round);
      worker_.mixer.combine(near, now, fused ? &next : nullptr);
      if (worker_.progress.settles)
        worker_.mixer.memory().settle();  // what was read, is then final
    }
    return std::ranges::all_of(arrivals, [&](const Arrival& arrival) {
      return !is_present(arrival) || worker_.exchange.is_intact(arrival);
    });
  }
};

/// All others over host memory above staleness 0: a slot may be written to while it is read. What
/// was read is checked, and read again, at most three times, before it is used.
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
        combine::Neighborhood near = memory_.neighborhood(arrivals, round);
        limit(near, round);
        worker_.mixer.gather(near);
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

/// A codec makes infinities of finite weights that it cannot hold.
void Combiner::limit(combine::Neighborhood& near, const RoundPlan::Round& round) {
  const std::size_t present = near.workers.size(), all = round.row.neighbors.size();
  if (robust_.limit(near, all)) {
    if (robust_.lacks_neighbors() && !std::exchange(has_warned_, true))
      worker_.warn(
          fmt::format("robust averaging: in round {}, worker {} has {} of {} neighbors, too few to "
                      "tell whether one is bad; it takes nothing from them while so few are there",
                      worker_.progress.stats.rounds, worker_.rank(), present, all));
    return;
  }
  require_finite(worker_, worker_.mixer.has_finite_weights());
  fail(ErrorKind::numeric,
       "Worker: worker {} in round {}: its own message has a value that is not finite in codec {}, "
       "though its weights are finite; robust averaging compares the others with it. Choose a "
       "codec of a wider range, or try a smaller learning rate",
       worker_.rank(), worker_.progress.stats.rounds, codec::name(worker_.options().codec));
}

namespace {

/// Whether nothing but a block's elements counts when it is combined: no numbers that come with a
/// message, no sums or changes, each of which counts once, and no shares that must add up.
bool reads_blocks(const WorkerConfig& setting) {
  const algorithm::RuleTraits& traits = setting.traits;
  if (traits.plain_average || setting.exact()) return traits.plain_average;
  return setting.shape.scalars == 0 && !setting.sends_sums() && !traits.messages.by_edge &&
         !traits.messages.selection.selects() && !traits.topology.divides() &&
         !traits.memory.remembers_neighbors;
}

}  // namespace

std::unique_ptr<Combiner> make_combiner(const Context& context) {
  const bool on_device = context.options().accelerator != nullptr;
  const bool is_plain = context.options().robust == Robust::none;
  if (reads_blocks(context.setting) && is_plain && !on_device)
    return std::make_unique<BlockCombiner>(context);
  if (on_device || context.setting.exact()) return std::make_unique<ExactCombiner>(context);
  return std::make_unique<OptimisticCombiner>(context);
}

namespace {

bool any_arriving(const std::vector<Arrival>& arrivals) {
  return std::ranges::any_of(arrivals,
                             [](const Arrival& arrival) { return arrival.arriving != 0; });
}

bool any_torn(const std::vector<Arrival>& arrivals) {
  return std::ranges::any_of(
      arrivals, [](const Arrival& arrival) { return arrival.state == Arrival::State::torn; });
}

}  // namespace

Round::Round(const Context& context, RoundPlan& plan, LagDetector& lag, Publisher& publisher)
    : worker_(context),
      plan_(plan),
      lag_(lag),
      publisher_(publisher),
      combiner_(make_combiner(context)) {}

void Round::begin() {
  if (worker_.setting.before_step() && worker_.setting.exact()) {
    worker_.exchange.begin_fetch(worker_.progress.combinations);
  }
}

void Round::publish_early(const algorithm::RoundInfo& info) {
  publisher_.publish(info);
  worker_.progress.published_early = true;
}

/// A worker that has come back has not published early.
bool Round::run(const algorithm::RoundInfo& info) {
  const bool published = std::exchange(worker_.progress.published_early, false);
  if (!worker_.setting.before_step() && !published) publisher_.publish(info);
  const auto round = plan_.at(info.round);
  std::vector<Arrival> arrivals = fetch(info.round, combiner_->reads_early());
  const bool arriving = any_arriving(arrivals);
  bool made = combine(arrivals, *round, known(info, *round));
  if (!made && arriving) {
    arrivals = fetch(info.round, false);  // whole
    made = combine(arrivals, *round, known(info, *round));
  }
  if (!made) return false;
  count_reads(arrivals, round->row);
  const bool sent = worker_.progress.sent;  // what the neighbors read in this round
  commit(info);
  count_sent(sent, round->edges);
  return true;
}

algorithm::RoundInfo Round::known(algorithm::RoundInfo info, const RoundPlan::Round& round) {
  if (worker_.setting.traits.topology.needs_meetings) info.meetings = plan_.meetings();
  if (!worker_.setting.traits.topology.needs_sites) return info;
  info.between_sites = round.between_sites;
  info.between_sites_next = plan_.at(info.round + 1)->between_sites;
  return info;
}

std::vector<Arrival> Round::fetch(std::int64_t round, bool early) {
  const PhaseTimer timer(worker_, Phase::wait, worker_.progress.stats.wait_s);
  return early ? worker_.exchange.fetch_early(round) : worker_.exchange.fetch(round);
}

bool Round::combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
                    const algorithm::RoundInfo& info) {
  if (worker_.setting.exact() && any_torn(arrivals)) return false;  // what the last round has read
  const bool all_there = worker_.setting.exact() && std::ranges::all_of(arrivals, is_present);
  if (!all_there && !lag_.keeps_up(arrivals)) return false;
  return combiner_->combine(arrivals, round, info);
}

void Round::commit(const algorithm::RoundInfo& info) {
  const auto at = Clock::now();
  if (worker_.setting.fused()) require_finite(worker_, worker_.mixer.is_finite());
  {
    const PhaseTimer timer(worker_, Phase::commit, worker_.progress.commit_s);
    worker_.exchange.complete(info.round + 1);
    if (worker_.setting.fused()) worker_.exchange.publish(info.round + 1);
  }
  if (worker_.setting.fused()) {
    worker_.report_published(at);
  } else if (worker_.setting.before_step()) {
    publisher_.publish({.round = info.round + 1, .learning_rate = info.learning_rate});
  }
}

namespace {

/// None where nothing is limited.
std::optional<double> share_of(const std::vector<combine::KeptShare>& kept, int worker) {
  const auto found = std::ranges::find(kept, worker, &combine::KeptShare::worker);
  return found == kept.end() ? std::nullopt : std::optional(found->share);
}

void add(std::vector<NeighborShare>& shares, int worker, double kept) {
  auto of = std::ranges::lower_bound(shares, worker, {}, &NeighborShare::worker);
  if (of == shares.end() || of->worker != worker) of = shares.insert(of, {.worker = worker});
  ++of->reads;
  if (kept < 1) ++of->clipped;
  of->kept += (kept - of->kept) / static_cast<double>(of->reads);
}

}  // namespace

namespace {

/// Of that neighbor in any shard.
double largest_weight(const MixingRow& row, std::size_t k) {
  double largest = row.weights[k];
  for (const std::vector<double>& shard : row.shards) largest = std::max(largest, shard[k]);
  return largest;
}

}  // namespace

void Round::count_reads(const std::vector<Arrival>& arrivals, const MixingRow& row) {
  WorkerStats& stats = worker_.progress.stats;
  const std::vector<combine::KeptShare> limited = combiner_->kept();
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    const Arrival& arrival = arrivals[k];
    if (!is_present(arrival)) {
      ++stats.skipped;
      stats.mean_drift_weight += largest_weight(row, k);
      if (arrival.state == Arrival::State::suspect && worker_.options().on_suspect) {
        worker_.options().on_suspect(arrival.worker);
      }
      continue;
    }
    ++stats.reads;
    if (arrival.fresh) ++stats.fresh_reads;
    const std::int64_t age =
        std::max<std::int64_t>(0, worker_.progress.combinations - arrival.round);
    const auto last = static_cast<std::int64_t>(stats.ages.size()) - 1;
    ++stats.ages[static_cast<std::size_t>(std::min(age, last))];
    const std::optional<double> kept = share_of(limited, arrival.worker);
    if (kept) add(stats.shares, arrival.worker, *kept);
    if (worker_.options().observer) report_read(arrival, age, kept.value_or(1));
  }
}

void Round::report_read(const Arrival& arrival, std::int64_t age, double kept) const {
  worker_.options().observer->on_message({MessageEvent::Kind::read, worker_.rank(), arrival.worker,
                                          arrival.sequence, worker_.progress.stats.rounds, age,
                                          arrival.fresh, Clock::now(), kept});
}

void Round::count_sent(bool sent, const RoundEdges& edges) {
  WorkerStats& stats = worker_.progress.stats;
  const std::size_t readers = edges.destinations.size();
  if (!sent) {
    stats.messages_held += static_cast<std::int64_t>(readers);
    return;
  }
  stats.messages_sent += static_cast<std::int64_t>(readers);
  const PayloadShape& shape = worker_.setting.shape;
  if (edges.destination_parts.empty())
    stats.bytes_sent +=
        static_cast<double>(readers) * static_cast<double>(shape.payload_bytes(edges.part));
  for (const PayloadPart& part : edges.destination_parts)
    stats.bytes_sent += static_cast<double>(shape.payload_bytes(part));
}

}  // namespace fast::worker
