// From neighbors' publications to new weights.
#pragma once

#include <memory>
#include <vector>

#include "worker/neighbor_memory.hpp"

namespace fast::worker {

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
  /// See NeighborMemory.
  void leave_out_rounds() { memory_.leave_out_rounds(); }

 protected:
  explicit Combiner(const Context& context) : worker_(context), memory_(context) {}

  /// The slot of the next publication.
  MutablePayload acquire();

  Context worker_;
  NeighborMemory memory_;
  double least_epoch_ = 0;
};

/// The one that fits the rule and the staleness.
std::unique_ptr<Combiner> make_combiner(const Context& context);

}  // namespace fast::worker
