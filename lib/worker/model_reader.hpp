// What workers have published: a worker's weights, the mean of several, how far these are apart.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "combine/mixer.hpp"
#include "exchange/peers.hpp"

namespace fast::worker {

// Sums over replicas, for their mean and their distance from it, a range of elements at a time.

/// A run of a packed model's elements, of one type and role.
struct ElementBlock {
  std::size_t offset_bytes = 0;
  std::size_t element_count = 0;
  DType dtype = DType::f32;
  Role role = Role::parameter;
  std::size_t size_bytes() const { return element_count * fast::size_bytes(dtype); }
  std::size_t end_bytes() const { return offset_bytes + size_bytes(); }
};

std::size_t element_count(const ParameterLayout& layout);

/// The elements from `first` to before `last`, in the packed order, in blocks of at most `most`.
std::vector<ElementBlock> blocks_of(const ParameterLayout& layout, std::size_t first,
                                    std::size_t last, std::size_t most);

class ReplicaSums {
 public:
  /// What is computed.
  struct Wanted {
    bool mean = false;
    bool distance = false;
  };
  explicit ReplicaSums(Wanted wanted) : wanted_(wanted) {}

  /// Begins anew with these blocks, in the order of their offsets.
  void begin(std::span<const ElementBlock> blocks);
  /// Each of `values`: a replica's bytes from the first block's offset on. In that order.
  void add(std::span<const std::byte* const> values);
  void add(const std::byte* values) { add(std::span(&values, 1)); }
  int count() const { return count_; }

  /// Writes the mean; `to` is where the first block begins.
  void store_mean(std::byte* to) const;
  /// Σ_e mean_i (x_ie - x̄_e)², over parameters. May be slightly below 0.
  double mean_square() const;

 private:
  template <class T>
  void add(std::span<const T* const> values, const ElementBlock& block, std::size_t at);

  Wanted wanted_;
  std::vector<ElementBlock> blocks_;
  std::vector<double> sums_;         ///< of all values
  std::vector<double> differences_;  ///< sums of the differences from the first replica
  std::vector<std::byte> first_;     ///< that replica's values as T, eight bytes each
  mutable std::vector<float> widened_;
  double squares_ = 0;  ///< of the differences
  int count_ = 0;
};

/// Nothing here is collective or waits for more than a read.
class ModelReader {
 public:
  /// Elements that are read at once: few, so that sums over them stay in the cache; more where each
  /// read is a round trip to another host.
  static constexpr std::size_t on_host = std::size_t{1} << 13, between_hosts = std::size_t{1} << 20;

  /// `exchange` and `mixer` live longer than this.
  /// `own` is this worker's number: what is read of it does not count as read. So many threads read
  /// long models of this host; the bits are the same with any number.
  ModelReader(Exchange& exchange, std::shared_ptr<const Peers> peers, const combine::Mixer& mixer,
              const PayloadShape& shape, int own = -1, std::size_t block_elements = on_host,
              int threads = 1);

  /// The weights of a worker's newest publication, packed. If they were not published beside its
  /// message, they are as precise as the message. None when they could not be read whole, else the
  /// round that they were published for.
  std::optional<std::int64_t> read(int worker, const AlignedBuffer& packed) const;

  /// Weights that were read.
  struct Seen {
    int worker = 0;
    std::int64_t round = 0;  ///< that they were published for, or no_round
  };
  /// The average of those workers whose weights can be read. Throws Error(internal) when there are
  /// none.
  std::vector<Seen> read_mean(const std::vector<int>& workers, std::span<std::byte> packed) const;
  /// The same; returns how many that are.
  int mean_of(const std::vector<int>& workers, std::span<std::byte> packed) const {
    return static_cast<int>(read_mean(workers, packed).size());
  }
  /// sqrt(mean_i ‖x_i - x̄‖²) of the same, over parameters.
  double distance_among(const std::vector<int>& workers) const;

  /// Called with the sums over all workers that could be read, by several threads at once.
  using Visit = std::function<void(std::span<const ElementBlock> blocks, const ReplicaSums& sums)>;
  struct Found {
    std::vector<Seen> seen;
    double mean_square = 0;  ///< of all blocks
  };
  /// Sums over final weights, of these blocks, one by one. All of a worker's weights count, or none
  /// of them.
  Found visit(const std::vector<int>& workers, std::span<const ElementBlock> blocks,
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
  struct Source {
    int worker;
    Snapshot found;  ///< in the first block
    Piece piece;
  };
  bool add_block(std::vector<Source>& sources, const ElementBlock& block,
                 std::vector<std::byte>& room, ReplicaSums& sums) const;
  Found visit_all(const std::vector<int>& workers, ReplicaSums::Wanted wanted,
                  const Visit& visit) const;
  std::optional<Found> visit_blocks(std::vector<int>& workers, std::span<const ElementBlock> blocks,
                                    ReplicaSums::Wanted wanted, const Visit& visit) const;
  Found visit_whole(const std::vector<int>& workers, ReplicaSums::Wanted wanted,
                    const Visit& visit) const;
  bool is_weights(Snapshot found) const;

  Exchange* exchange_;
  std::shared_ptr<const Peers> peers_;
  const combine::Mixer* mixer_;
  PayloadShape shape_;
  int own_;
  std::size_t block_elements_;
  int threads_;
  mutable std::atomic<std::size_t> bytes_read_{0};
};

}  // namespace fast::worker
