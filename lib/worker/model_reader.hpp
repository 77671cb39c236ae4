// What workers have published: a worker's weights, the mean of several, how far these are apart.
#pragma once

#include <fast/core/memory.hpp>
#include <memory>
#include <span>
#include <vector>

#include "combine/mixer.hpp"

namespace fast::worker {

/// Nothing here is collective or waits for more than a read.
class ModelReader {
 public:
  /// `exchange` and `mixer` live longer than this.
  ModelReader(Exchange& exchange, std::shared_ptr<const Peers> peers, const combine::Mixer& mixer,
              const PayloadShape& shape);

  /// The weights of a worker's newest publication, packed. If they were not published beside its
  /// message, they are as precise as the message. False when they could not be read whole.
  bool read(int worker, const AlignedBuffer& packed) const;
  /// The average of those workers whose weights can be read; returns how many that are. Throws
  /// Error(internal) when there are none.
  int mean_of(const std::vector<int>& workers, std::span<std::byte> packed) const;
  /// sqrt(mean_i ‖x_i - x̄‖²) of the same, over parameters.
  double distance_among(const std::vector<int>& workers) const;

 private:
  template <class Visit>
  int for_each(const std::vector<int>& workers, const Visit& visit) const;

  Exchange* exchange_;
  std::shared_ptr<const Peers> peers_;
  const combine::Mixer* mixer_;
  PayloadShape shape_;
};

}  // namespace fast::worker
