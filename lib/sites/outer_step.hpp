// The arithmetic of an exchange between sites: a rule over a copy of the model.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "combine/host_mixer.hpp"

namespace fast::sites {

/// What an exchange reads of another site, and what it counts.
struct Source {
  const std::byte* message = nullptr;
  double weight = 0;
};

/// Memory: the model, the rule's state, and what publish() returns.
class OuterStep {
 public:
  /// For models of that layout, which lie in host memory. Throws Error(argument) for a rule that
  /// this does not run.
  OuterStep(const ParameterLayout& model, const algorithm::Rule& rule);

  /// Of packed models: messages, and the weights at the beginning of a state.
  const ParameterLayout& layout() const { return layout_; }
  std::uint64_t message_bytes() const { return mixer_->coded().size_bytes(); }
  std::uint64_t state_bytes() const;

  /// The rule begins with these weights.
  void start(const ParameterLayout& model);
  /// Takes the weights to which the steps have come, and makes the message of exchange `number` of
  /// them. Null: it is not finite, and the exchange is not to be made.
  std::shared_ptr<const AlignedBuffer> publish(const ParameterLayout& model, std::int64_t number);
  /// Ends the exchange of the latest publish(), some steps later for rules with a delay: writes the
  /// next weights to the model. The rest of the weights, 1 - Σ weight, is this site's own. `sites`:
  /// how many took part.
  void combine(const ParameterLayout& model, std::int64_t number, std::span<const Source> sources,
               int sites);

  /// The rule goes on from its weights as if it had made no step before.
  void forget_momentum();

  /// Writes the weights after the latest exchange, or those of adopt(), to the model.
  void put_back(const ParameterLayout& model) const { model.scatter(weights_.data()); }
  /// The weights after the latest exchange, the rule's memory, and describe_weights(). While an
  /// exchange is under way, the weights are the rule's φ, and buffers those of now.
  std::shared_ptr<const AlignedBuffer> state() const;
  /// Takes over what another site's state() has returned.
  void adopt(const ParameterLayout& model, const AlignedBuffer& state);
  /// The rule's memory as bytes, which take() takes over.
  std::shared_ptr<const AlignedBuffer> handover() const;
  void take(std::span<const std::byte> handover);

  /// The rule's memory, for checkpoints.
  std::vector<TensorView> memory() const;
  /// Takes over what memory() had, if all of it is among `saved`. False: the rule begins anew.
  bool take_memory(const std::vector<TensorView>& saved);

  /// Of a message, or of the weights at the beginning of a state.
  bool is_finite(const std::byte* message) const { return combine::is_finite(layout_, message); }
  /// Of all that adopt() takes.
  bool is_finite_state(const AlignedBuffer& state) const;

 private:
  std::vector<std::span<std::byte>> memory_parts() const;
  std::vector<std::span<std::byte>> parts() const;
  std::byte* phi() const;

  std::string rule_;        ///< its name
  AlignedBuffer weights_;   ///< packed
  ParameterLayout layout_;  ///< of weights_
  std::string description_;
  std::unique_ptr<combine::HostMixer> mixer_;
  std::shared_ptr<AlignedBuffer> own_;  ///< the message in force
  bool is_under_way_ = false;           ///< from publish() to combine()
};

}  // namespace fast::sites
