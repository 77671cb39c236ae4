// What workers have published: a worker's weights, the mean of several, how far these are apart.
#pragma once

#include <atomic>
#include <fast/core/memory.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "combine/mixer.hpp"
#include "worker/replica_sums.hpp"

namespace fast::worker {

/// Nothing here is collective or waits for more than a read.
class ModelReader {
 public:
  /// Elements that are read at once: few, so that sums over them stay in the cache; more where each
  /// read is a round trip to another host.
  static constexpr std::size_t on_host = std::size_t{1} << 16, between_hosts = std::size_t{1} << 20;

  /// `exchange` and `mixer` live longer than this.
  /// `own` is this worker's number: what is read of it does not count as read.
  ModelReader(Exchange& exchange, std::shared_ptr<const Peers> peers, const combine::Mixer& mixer,
              const PayloadShape& shape, int own = -1, std::size_t block_elements = on_host);

  /// The weights of a worker's newest publication, packed. If they were not published beside its
  /// message, they are as precise as the message. False when they could not be read whole.
  bool read(int worker, const AlignedBuffer& packed) const;
  /// The average of those workers whose weights can be read; returns how many that are. Throws
  /// Error(internal) when there are none.
  int mean_of(const std::vector<int>& workers, std::span<std::byte> packed) const;
  /// sqrt(mean_i ‖x_i - x̄‖²) of the same, over parameters.
  double distance_among(const std::vector<int>& workers) const;

  /// Called with the sums over all workers that could be read.
  using Visit = std::function<void(std::span<const ElementBlock> blocks, const ReplicaSums& sums)>;
  /// Sums over final weights, of these blocks, one by one. All of a worker's weights count, or none
  /// of them. Returns how many workers that are.
  int visit(const std::vector<int>& workers, std::span<const ElementBlock> blocks,
            ReplicaSums::Wanted wanted, const Visit& visit) const;

  /// True if publications hold the weights themselves, so that parts of them can be read.
  bool holds_weights() const;
  std::size_t block_elements() const { return block_elements_; }
  /// Notes that so many bytes of a worker's model were read.
  void note_read(int worker, std::size_t bytes) const {
    if (worker != own_) bytes_read_ += bytes;
  }
  double bytes_read() const { return static_cast<double>(bytes_read_); }

 private:
  int visit_all(const std::vector<int>& workers, ReplicaSums::Wanted wanted,
                const Visit& visit) const;
  std::optional<int> visit_blocks(std::vector<int>& workers, std::span<const ElementBlock> blocks,
                                  ReplicaSums::Wanted wanted, const Visit& visit) const;
  int visit_whole(const std::vector<int>& workers, ReplicaSums::Wanted wanted,
                  const Visit& visit) const;
  bool is_weights(Snapshot found) const;

  Exchange* exchange_;
  std::shared_ptr<const Peers> peers_;
  const combine::Mixer* mixer_;
  PayloadShape shape_;
  int own_;
  std::size_t block_elements_;
  mutable std::atomic<std::size_t> bytes_read_{0};
};

}  // namespace fast::worker
