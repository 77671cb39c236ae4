// Runs a rule over a model's memory: the books of a worker's rounds, whose sweeps are made where
// that memory is. Knows payload pointers, not how they came.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/core/tensor_view.hpp>

#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "codec/coder.hpp"
#include "combine/block_sources.hpp"
#include "combine/message_scalars.hpp"
#include "combine/model_memory.hpp"
#include "combine/running_sums.hpp"

namespace fast::combine {

/// Of either type, or none; not owning.
using AnyPartUpdate =
    std::variant<std::monostate, const PartUpdate<float>*, const PartUpdate<double>*>;

/// Sums of squares of the differences between neighbors' messages and the worker's own, by
/// neighbor.
struct SquaredDistances {
  std::vector<double> parameters, buffers;
};

/// One sweep over the model. What is absent is not done.
struct Pass {
  /// weights: they alone are the message. measure: nothing but `distances` changes.
  enum class Kind { start, survey, publish, weights, combine, gather, measure } kind;
  algorithm::RoundInfo info;
  Payload own;
  const Neighborhood* neighborhood = nullptr;  ///< pulls are computed from these
  BlockSources* sources = nullptr;             ///< of `neighborhood`, where it may change
  bool gathered = false;                       ///< pulls are those that Kind::gather left
  const Payload* pull = nullptr;               ///< pull 0 is given
  const MutablePayload* next = nullptr;
  SquaredDistances* distances = nullptr;  ///< of `neighborhood`
};

class Mixer {
 public:
  virtual ~Mixer() = default;

  const ModelMemory& memory() const { return *memory_; }
  const ParameterLayout& layout() const { return memory_->layout(); }
  /// Of a payload's vectors.
  const codec::CodedLayout& coded() const { return coded_; }
  MessageScalars& scalars() { return scalars_; }
  /// False if the last survey, publication or measure() (in the worker's own message) has met a
  /// value that is not finite. Sweeps on a device do not look.
  bool is_finite() const { return finite_; }
  /// Looks at the model's memory, on a device too.
  virtual bool has_finite_weights() const { return memory_->is_finite(); }
  /// On a device, enqueues a look at the weights. If that meets a value that is not finite, the
  /// next publication or combination first takes the weights from `own`, this worker's latest one.
  /// False: this mixer or rule cannot, and nothing was done.
  virtual bool guard(const Payload& /*own*/) { return false; }
  /// Does now what guard() has left to a publication or combination that will not come. Waits.
  virtual void take_back() {}
  /// Looks of guard() that have met such a value, as far as the device is known to have come.
  virtual std::uint32_t bad_looks() const { return 0; }
  /// Of messages on a device that the host codes; null: there are none.
  virtual codec::HostMessage* host_message() { return nullptr; }
  /// The model has moved in memory.
  virtual void rebind(ParameterLayout layout);

  /// What is kept between rounds, the rule's own numbers included, for checkpoints. Not to be asked
  /// for while a round is under way.
  virtual std::vector<TensorView> state() = 0;
  /// What state() gave views of has been written.
  virtual void take_state() {}

  /// Lets the rule set up its state from the weights as they are; `equal` if all workers' are so.
  void start(bool equal);
  /// Begins the state anew, in that epoch (see MessageScalars).
  void restart(double epoch);
  /// Asks the rule whether the weights as they are shall be published, given what is: `own`.
  bool begin_publish(const Payload& own, const algorithm::RoundInfo& info);
  /// Then fills the publication.
  void publish(const MutablePayload& next, const algorithm::RoundInfo& info);
  /// The weights as they are, exactly: beside the message, if there is room, else as vector 0;
  /// `as_message`: as the message, too.
  void publish_weights(const MutablePayload& next, bool as_message);
  /// The whole end of a round, straight from the neighbors' memory: new weights, and the next
  /// publication if given.
  void combine(const Neighborhood& neighborhood, const algorithm::RoundInfo& info,
               const MutablePayload* next);
  /// The same over host memory, block by block, where the sources' payloads may arrive (of rules
  /// that only average) or change meanwhile. False if what was read does not count: a payload has
  /// not come, and the weights are as before; or a neighbor has gone on without this worker.
  bool combine(BlockSources& sources, const algorithm::RoundInfo& info, const MutablePayload* next);
  /// The same in two halves, for whole messages and memory that may change while it is read:
  /// gather() changes nothing but scratch and may be repeated; combine_gathered() then uses what it
  /// left.
  void gather(const Neighborhood& neighborhood);
  void combine_gathered(const Payload& own, const algorithm::RoundInfo& info,
                        const MutablePayload* next);
  /// Of rules whose messages are the weights, over host memory.
  SquaredDistances measure(const Neighborhood& neighborhood);
  /// Elements of the model, those of buffers among them.
  std::uint64_t elements() const;
  /// Until told otherwise (by none) combinations take the weights from the worker's own
  /// slot, updated, and leave the model's memory alone: for weights that live in slots.
  void take_updates(AnyPartUpdate update) { update_ = update; }
  bool takes_updates() const { return !std::holds_alternative<std::monostate>(update_); }
  /// The average of all δ given (packed, where δ = weights - own): for Scope::everybody.
  void combine_with_pull(const Payload& own, const Payload& pull, const algorithm::RoundInfo& info);

 protected:
  /// Messages are coded with `codec`; where the algorithm sends few entries, their values are. The
  /// seed of random roundings is to differ between workers. `sums`: running sums travel, of those
  /// vectors that the algorithm declares for it; combinations are then gathered.
  Mixer(std::unique_ptr<ModelMemory> memory, std::shared_ptr<algorithm::Algorithm> algorithm,
        const codec::Options& codec, bool sums);

  virtual void run(const Pass& pass) = 0;

  const algorithm::RuleTraits& traits() const { return algorithm_->traits(); }
  /// The model has 16-bit elements: they are computed with as floats, and keep a remainder.
  bool has_halves() const;
  /// combine() looks at the payload, which may not be the message.
  bool keeps_payload() const {
    return traits().messages.own == algorithm::Own::payload && !traits().plain_average;
  }
  /// Of this model's messages, which have been none.
  codec::Coder make_coder() const;
  bool is_summed(int vector) const { return sums_ && vector >= traits().messages.summed_from; }

  std::unique_ptr<ModelMemory> memory_;
  std::shared_ptr<algorithm::Algorithm> algorithm_;
  codec::Options codec_;
  codec::CodedLayout coded_;
  std::unique_ptr<RunningSums> sums_;  ///< null: publications travel as they are
  bool finite_ = true;
  AnyPartUpdate update_;

 private:
  void look_at(const Neighborhood& neighborhood);
  void finish_combine(Pass pass);

  MessageScalars scalars_;
  std::vector<int> gathered_from_;  ///< workers
  double self_weight_ = 1, neighbor_weight_ = 0;
  std::array<double, algorithm::max_payload_vectors> edge_weight_{};
};

}  // namespace fast::combine
