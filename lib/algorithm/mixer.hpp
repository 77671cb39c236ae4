// Runs a rule over a model's memory: in blocks that stay in the first-level cache, so that the
// neighbours' sum, the rule and the next publication make one pass over memory. Knows payload
// pointers, not how they came.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/core/layout.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/exchange.hpp>
#include <memory>
#include <span>
#include <vector>

namespace fast::algorithm {

/// The round's neighbours that are present, and their weights.
struct Neighborhood {
  Payload own;
  std::vector<Payload> payloads;
  std::vector<double> weights;
  double self_weight = 1;
};

class Mixer {
 public:
  Mixer(ParameterLayout layout, std::shared_ptr<Algorithm> algorithm);

  const ParameterLayout& layout() const { return layout_; }
  void rebind(ParameterLayout layout) { layout_ = std::move(layout); }

  /// Lets the rule set up its state from the weights as they are; `equal` if all workers' are so.
  void start(bool equal);
  /// Asks the rule whether the weights as they are shall be published, given what is: `own`.
  bool begin_publish(const Payload& own, const RoundInfo& info);
  /// Then fills the publication.
  void publish(const MutablePayload& next, const RoundInfo& info);
  /// The whole end of a round, straight from the neighbours' memory: new weights, and the next
  /// publication if given.
  void combine(const Neighborhood& neighborhood, const RoundInfo& info, const MutablePayload* next);
  /// The same in two halves, for memory that may change while it is read: gather() changes nothing
  /// but scratch and may be repeated; combine_gathered() then uses what it left.
  void gather(const Neighborhood& neighborhood);
  void combine_gathered(const Payload& own, const RoundInfo& info, const MutablePayload* next);
  /// The average of all δ given (packed, where δ = weights - own): for Scope::everybody.
  void combine_with_pull(const Payload& own, const Payload& pull, const RoundInfo& info);

 private:
  struct Pass;
  template <class Stored>
  struct SegmentSweep;
  void run(const Pass& pass);
  void look_at(const Neighborhood& neighborhood);
  void finish_combine(Pass pass);
  std::span<double> scalars() {
    return {scalars_.data(), static_cast<std::size_t>(algorithm_->declaration().payload_scalars)};
  }
  std::size_t kept_bytes() const;

  ParameterLayout layout_;
  std::shared_ptr<Algorithm> algorithm_;
  std::vector<AlignedBuffer> state_;     ///< in the type of computation, segment after segment
  std::vector<AlignedBuffer> gathered_;  ///< pulls, by payload vector
  std::array<double, max_payload_scalars> scalars_{}, pulled_scalars_{};
  double self_weight_ = 1, neighbor_weight_ = 0;
};

}  // namespace fast::algorithm
