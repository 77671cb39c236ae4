// What a worker publishes, and when.
#pragma once

#include "worker/context.hpp"

namespace fast::worker {

/// Throws Error(numeric), which names the tensor, unless `finite`: before a publication.
void require_finite(const Context& worker, bool finite);

class Publisher {
 public:
  explicit Publisher(const Context& context) : worker_(context) {}

  /// Publishes the rule's message of that round.
  void publish(const algorithm::RoundInfo& info);
  /// Publishes the weights alone, for mean models. At staleness 0 no neighbor takes them for a
  /// round's message.
  void publish_weights();
  /// The first publication, before combination `round`.
  void begin(std::int64_t round);
  /// Begins the rule's memory anew and publishes what the weights are now, for combination `round`.
  void restart(std::int64_t round) { restart(round, worker_.mixer.scalars().epoch() + 1); }
  /// The same in that epoch.
  void restart(std::int64_t round, double epoch);

 private:
  Context worker_;
};

}  // namespace fast::worker
