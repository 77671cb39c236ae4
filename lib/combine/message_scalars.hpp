// The numbers that a rule sends beside a message's vectors, and the epoch of the message.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/exchange/exchange.hpp>

#include <array>
#include <span>

#include "combine/block_sources.hpp"
#include "combine/running_sums.hpp"

namespace fast::combine {

class MessageScalars {
 public:
  /// `sums`: running sums travel in place of the numbers; null: they travel as they are.
  MessageScalars(const algorithm::RuleTraits& traits, RunningSums* sums);

  /// Doubles beside a payload's vectors: the rule's own, then the epoch if the rule remembers its
  /// neighbors.
  int count() const { return static_cast<int>(own_count_) + (has_epoch_ ? 1 : 0); }
  /// The rule's own, of the next message.
  std::span<double> own() { return {own_.data(), own_count_}; }
  /// The last look's weighted differences from the neighbors.
  std::span<const double> pulled() const { return {pulled_.data(), own_count_}; }

  /// Within an epoch, what workers take of each other adds up. Rules that do not remember their
  /// neighbors stay in epoch 0.
  double epoch() const { return epoch_; }
  void begin(double epoch) {
    if (has_epoch_) epoch_ = epoch;
  }
  /// Of the worker that published the payload; 0 where the rule remembers nobody.
  double epoch_of(const Payload& payload) const;
  /// For checkpoints.
  TensorView epoch_view() { return view_of("mixer.epoch", std::span(&epoch_, 1)); }

  /// Computes pulled(). A neighbor's message counts with the weight that the rule gives it.
  void look_at(const Neighborhood& neighborhood);
  /// The numbers that pulled() was computed against, of a message `own`.
  std::span<const double> base(const Payload& own) const;
  /// Adds the rule's numbers to the sums, where sums travel.
  void add_to_sums();
  /// Writes what travels.
  void write(const MutablePayload& next) const;

 private:
  algorithm::RuleTraits traits_;
  std::size_t own_count_;
  bool has_epoch_;
  RunningSums* sums_;
  std::array<double, algorithm::max_payload_scalars> own_{}, pulled_{};
  double epoch_ = 0;
};

}  // namespace fast::combine
