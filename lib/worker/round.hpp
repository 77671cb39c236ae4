// A round with the neighbors: fetch what they have published, combine, publish.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "combine/robust_average.hpp"
#include "worker/context.hpp"
#include "worker/lag_detector.hpp"
#include "worker/publisher.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

/// Which neighbors take part in a combination. Rules that remember their neighbors begin a new
/// epoch when a neighbor leaves or comes back, or when a spare has taken its seat.
class NeighborMemory {
 public:
  explicit NeighborMemory(const Context& context);

  /// The epoch after a combination with these arrivals: the newest that any of them has; or one
  /// more than this worker's when a neighbor has left or come back, or is another rank. One more
  /// than any when this worker has missed messages of a neighbor that is there again. Notes who is
  /// there.
  double epoch_after(const std::vector<Arrival>& arrivals, const RoundPlan::Round& round);
  /// The neighbors that are there, with their weights. Messages of another epoch are left out,
  /// except running sums, of which the mixer then takes nothing.
  combine::Neighborhood neighborhood(const std::vector<Arrival>& arrivals,
                                     const RoundPlan::Round& round) const;

  /// This worker has left out rounds, or is new in its place.
  void leave_out_rounds() { left_out_rounds_ = true; }

 private:
  struct Changes {
    bool any = false;
    bool source_came = false;
  };
  enum class Change { none, left, came, other };  ///< other: another rank is in its place
  int rank_of(int worker) const;
  Change meet(int worker, std::optional<int> rank);
  Changes note(const std::vector<Arrival>& arrivals, const RoundEdges& edges);
  double kept_shares(const RoundPlan::Round& round) const;

  Context worker_;
  /// By worker, the rank that was there when this worker last met it; none: it was absent.
  std::vector<std::optional<int>> met_;
  bool left_out_rounds_ = false;
};

/// From neighbors' publications to new weights.
class Combiner {
 public:
  virtual ~Combiner() = default;
  /// Whether combine() takes payloads that are still arriving.
  virtual bool reads_early() const { return false; }
  /// Makes the new weights and, where WorkerConfig::fused(), the next publication. `arrivals`
  /// become those that were used. False when a payload does not arrive, which has changed no
  /// weights, or when a neighbor has gone on without this worker: it wrote to what was being read.
  virtual bool combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
                       const algorithm::RoundInfo& info) = 0;
  /// In the coming round, rules that remember neighbors are in that epoch or in a newer one.
  void begin_epoch(double epoch) { least_epoch_ = epoch; }
  NeighborMemory& memory() { return memory_; }
  /// What robust averaging has kept of each neighbor in the latest combination; empty: it is off.
  std::vector<combine::KeptShare> kept() const { return robust_.kept(); }

 protected:
  explicit Combiner(const Context& context)
      : worker_(context), memory_(context), robust_(context.mixer, context.options().robust) {}

  /// The slot of the next publication.
  MutablePayload acquire();
  /// Robust averaging, where it is on. Throws Error(numeric) if the own message is not finite.
  void limit(combine::Neighborhood& near, const RoundPlan::Round& round);

  Context worker_;
  NeighborMemory memory_;
  combine::RobustAverage robust_;
  double least_epoch_ = 0;
  bool has_warned_ = false;  ///< of too few neighbors for robust averaging
};

/// The one that fits the rule and the staleness.
std::unique_ptr<Combiner> make_combiner(const Context& context);

class Round {
 public:
  Round(const Context& context, RoundPlan& plan, LagDetector& lag, Publisher& publisher);

  /// Before the user's step: begins to fetch what can be fetched already.
  void begin();
  /// After the step, of rules with a delay: publishes for the coming run().
  void publish_early(const algorithm::RoundInfo& info);
  /// After it. Blocks for neighbors. False when they have gone on without this worker: the round
  /// was not made.
  bool run(const algorithm::RoundInfo& info);
  Combiner& combiner() { return *combiner_; }

 private:
  bool combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
               const algorithm::RoundInfo& info);
  std::vector<Arrival> fetch(std::int64_t round, bool early);
  /// With what the rule is to know of the topology.
  algorithm::RoundInfo known(algorithm::RoundInfo info, const RoundPlan::Round& round);
  void commit(const algorithm::RoundInfo& info);
  void report_read(const Arrival& arrival, std::int64_t age, double kept) const;
  void count_reads(const std::vector<Arrival>& arrivals, const MixingRow& row);
  void count_sent(bool sent, const RoundEdges& edges);

  Context worker_;
  RoundPlan& plan_;
  LagDetector& lag_;
  Publisher& publisher_;
  std::unique_ptr<Combiner> combiner_;
};

}  // namespace fast::worker
