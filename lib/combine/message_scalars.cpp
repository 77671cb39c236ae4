#include "combine/message_scalars.hpp"

#include <algorithm>

#include "exchange/shared/seqlock.hpp"

namespace fast::combine {

MessageScalars::MessageScalars(const algorithm::RuleTraits& traits, RunningSums* sums)
    : traits_(traits),
      own_count_(static_cast<std::size_t>(traits.messages.scalars)),
      has_epoch_(traits.memory.remembers_neighbors),
      sums_(sums) {}

double MessageScalars::epoch_of(const Payload& payload) const {
  if (!has_epoch_) return 0;
  double room = 0;
  return *reinterpret_cast<const double*>(
      read_optimistically(reinterpret_cast<const std::byte*>(payload.scalars + own_count_),
                          reinterpret_cast<std::byte*>(&room), sizeof(double)));
}

void MessageScalars::look_at(const Neighborhood& neighborhood) {
  pulled_ = {};
  const std::span<const double> own = base(neighborhood.own);
  for (std::size_t s = 0; s < own_count_; ++s) pulled_[s] = -neighborhood.owed_weight * own[s];
  for (std::size_t j = 0; j < neighborhood.payloads.size(); ++j) {
    RunningSums::Source* source = sums_ ? &sums_->source(neighborhood.workers[j]) : nullptr;
    if (source != nullptr) source->same_epoch = epoch_of(neighborhood.payloads[j]) == epoch_;
    RunningSums::Scalars room;
    const auto* theirs = reinterpret_cast<const double*>(read_optimistically(
        reinterpret_cast<const std::byte*>(neighborhood.payloads[j].scalars),
        reinterpret_cast<std::byte*>(room.data()), own_count_ * sizeof(double)));
    for (std::size_t s = 0; s < own_count_; ++s) {
      double message = theirs[s];
      if (source != nullptr) {
        source->read.scalars[s] = message;
        message = source->same_epoch ? message - source->taken.scalars[s] : 0;
      }
      pulled_[s] += weight_of(traits_, neighborhood, j, static_cast<int>(s)) * (message - own[s]);
    }
  }
}

std::span<const double> MessageScalars::base(const Payload& own) const {
  return {sums_ ? own_.data() : own.scalars, own_count_};
}

void MessageScalars::add_to_sums() {
  for (std::size_t s = 0; sums_ && s < own_count_; ++s) sums_->own().scalars[s] += own_[s];
}

void MessageScalars::write(const MutablePayload& next) const {
  const auto& from = sums_ ? sums_->own().scalars : own_;
  std::copy_n(from.begin(), own_count_, next.scalars);
  if (has_epoch_) next.scalars[own_count_] = epoch_;
}

}  // namespace fast::combine
