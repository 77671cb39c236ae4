// A round with the neighbors: fetch what they have published, combine, publish.
#pragma once

#include <memory>
#include <vector>

#include "worker/combiner.hpp"
#include "worker/lag_detector.hpp"
#include "worker/publisher.hpp"

namespace fast::worker {

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
  /// See Combiner::begin_epoch().
  void begin_epoch(double epoch) { combiner_->begin_epoch(epoch); }
  /// See NeighborMemory.
  void leave_out_rounds() { combiner_->leave_out_rounds(); }

 private:
  bool combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
               const algorithm::RoundInfo& info);
  std::vector<Arrival> fetch(std::int64_t round, bool early);
  /// With what the rule is to know of the topology.
  algorithm::RoundInfo known(algorithm::RoundInfo info, const RoundPlan::Round& round);
  void commit(const algorithm::RoundInfo& info);
  void report_read(const Arrival& arrival, std::int64_t age) const;
  void count_reads(const std::vector<Arrival>& arrivals, const MixingRow& row);
  void count_sent(bool sent, std::size_t readers);

  Context worker_;
  RoundPlan& plan_;
  LagDetector& lag_;
  Publisher& publisher_;
  std::unique_ptr<Combiner> combiner_;
};

}  // namespace fast::worker
