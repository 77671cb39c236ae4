// Runs a rule over a model's memory: in blocks that stay in the first-level cache, so that the
// neighbours' sum, the rule and the next publication make one pass over memory. Knows payload
// pointers, not how they came.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/codec/coded_layout.hpp>
#include <fast/core/layout.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/part_update.hpp>
#include <fast/exchange/exchange.hpp>
#include <memory>
#include <span>
#include <vector>

#include "algorithm/running_sums.hpp"

namespace fast::algorithm {

/// The round's neighbours that are present, and their weights.
struct Neighborhood {
  Payload own;
  std::vector<int> workers;
  std::vector<Payload> payloads;
  std::vector<double> weights;
  double self_weight = 1;
};

/// Of either type, or none; not owning.
using AnyPartUpdate =
    std::variant<std::monostate, const PartUpdate<float>*, const PartUpdate<double>*>;

class Mixer {
 public:
  /// Messages are coded with `codec`, or as entries where the algorithm sends few. The seed of
  /// random roundings is to differ between workers. `sums`: running sums travel, of those vectors
  /// that the algorithm declares for it; combinations are then gathered.
  Mixer(ParameterLayout layout, std::shared_ptr<Algorithm> algorithm, const codec::Options& codec,
        bool sums = false);

  const ParameterLayout& layout() const { return layout_; }
  /// Of a payload's vectors.
  const codec::CodedLayout& coded() const { return coded_; }
  void rebind(ParameterLayout layout);

  /// What is kept between rounds, the rule's own numbers included, for checkpoints. Not to be asked
  /// for while a round is under way.
  std::vector<TensorView> state();

  /// Lets the rule set up its state from the weights as they are; `equal` if all workers' are so.
  void start(bool equal);
  /// Asks the rule whether the weights as they are shall be published, given what is: `own`.
  bool begin_publish(const Payload& own, const RoundInfo& info);
  /// Then fills the publication.
  void publish(const MutablePayload& next, const RoundInfo& info);
  /// The weights as they are, exactly: beside the message, if there is room, else as vector 0;
  /// `as_message`: as the message, too.
  void publish_weights(const MutablePayload& next, bool as_message);
  /// The whole end of a round, straight from the neighbours' memory: new weights, and the next
  /// publication if given.
  void combine(const Neighborhood& neighborhood, const RoundInfo& info, const MutablePayload* next);
  /// The same in two halves, for memory that may change while it is read: gather() changes nothing
  /// but scratch and may be repeated; combine_gathered() then uses what it left.
  void gather(const Neighborhood& neighborhood);
  void combine_gathered(const Payload& own, const RoundInfo& info, const MutablePayload* next);
  /// Until told otherwise (by none) combinations take the weights from the worker's own
  /// slot, updated, and leave the model's memory alone: for weights that live in slots.
  void take_updates(AnyPartUpdate update) { update_ = update; }
  /// The average of all δ given (packed, where δ = weights - own): for Scope::everybody.
  void combine_with_pull(const Payload& own, const Payload& pull, const RoundInfo& info);

 private:
  struct Pass;
  template <class Stored>
  struct SegmentSweep;
  void run(const Pass& pass);
  void begin_message(const MutablePayload& next);
  void write_scalars(const MutablePayload& next);
  void look_at(const Neighborhood& neighborhood);
  void finish_combine(Pass pass);
  std::span<double> scalars() {
    return {scalars_.data(), static_cast<std::size_t>(algorithm_->declaration().payload_scalars)};
  }
  AlignedBuffer kept() const;
  bool is_summed(int vector) const {
    return sums_ && vector >= algorithm_->declaration().summed_from;
  }
  template <class T>
  const PartUpdate<T>* update() const {
    const auto* held = std::get_if<const PartUpdate<T>*>(&update_);
    return held == nullptr ? nullptr : *held;
  }

  ParameterLayout layout_;
  std::shared_ptr<Algorithm> algorithm_;
  codec::Options codec_;
  codec::CodedLayout coded_;
  bool keeps_own_;        ///< the payload is needed again, and the message is not the same
  bool feeds_back_;       ///< what coding lost is added to the next message
  std::size_t widening_;  ///< from the packed offset of an element to that in the buffers below
  // In the type of computation.
  std::vector<AlignedBuffer> state_;
  std::vector<AlignedBuffer> gathered_;  ///< pulls, by payload vector
  std::vector<int> gathered_from_;       ///< workers
  std::vector<AlignedBuffer> sent_;      ///< payloads, where kept
  std::vector<AlignedBuffer> errors_;    ///< what coding lost, where fed back
  std::vector<codec::SparseWriter> writers_;
  std::unique_ptr<RunningSums> sums_;  ///< null: publications travel as they are
  std::int64_t messages_ = 0;
  AnyPartUpdate update_;
  std::array<double, max_payload_scalars> scalars_{}, pulled_scalars_{};
  double self_weight_ = 1, neighbor_weight_ = 0;
};

}  // namespace fast::algorithm
