// The parts of all workers: shared memory of workers of this host, mirrors of the others. Pure
// address arithmetic; the protocol is in slot_protocol.hpp. A part is a header, then three slots,
// then room for a copy of one slot, where such copies are kept. A slot has a message, which is
// scalars and vectors, and then the weights, if those are beside the message. Long slots of
// different workers lie differently in their pages: else more of them than a set of the first cache
// has lines would displace each other while they are read.
#pragma once

#include <fast/exchange/exchange.hpp>
#include <fast/exchange/group.hpp>

#include <algorithm>
#include <memory>
#include <vector>

#include "exchange/shared/worker_header.hpp"

namespace fast::exchange {

/// What travels of a message: all of it, or its scalars and a part of its vectors. In bytes of the
/// message.
struct MessagePart {
  std::size_t scalars = 0;
  PayloadPart vectors{};

  std::size_t size_bytes() const { return scalars + vectors.size_bytes(); }
  /// The next bytes from `from` on that travel, without a gap and at most so many; none at the end.
  PayloadPart run(std::size_t from, std::size_t most) const {
    if (from < scalars) return {from, from + std::min(most, scalars - from)};
    const std::size_t begin = std::max(from, vectors.begin);
    return {begin, begin + std::min(most, std::max(begin, vectors.end) - begin)};
  }
  /// Calls each(run) for all runs.
  template <class Each>
  void for_runs(std::size_t most, const Each& each) const {
    for (PayloadPart next = run(0, most); next.size_bytes() > 0; next = run(next.end, most))
      each(next);
  }
  bool operator==(const MessagePart&) const = default;
};

/// Offsets and lengths in bytes.
class SlotLayout {
 public:
  explicit SlotLayout(const PayloadShape& shape, bool keeps_copy = false);

  const PayloadShape& shape() const { return shape_; }

  // In a worker's part.
  static constexpr std::size_t header_bytes = round_up(sizeof(WorkerHeader), page_bytes);
  std::size_t part_bytes() const {
    return header_bytes + (slot_count + (keeps_copy_ ? 1 : 0)) * slot_bytes_;
  }
  /// Of the slot of publication `sequence`.
  std::size_t slot_offset(int worker, std::uint64_t sequence) const {
    return header_bytes + sequence % slot_count * slot_bytes_ + place_in_page(worker);
  }
  std::size_t slot_bytes() const { return slot_bytes_; }
  bool keeps_copy() const { return keeps_copy_; }
  std::size_t kept_offset(int worker) const {
    return header_bytes + slot_count * slot_bytes_ + place_in_page(worker);
  }

  // In a slot.
  std::size_t data_offset() const { return data_offset_; }  ///< of vector 0
  std::size_t message_bytes() const { return message_bytes_; }
  std::size_t weights_offset() const { return weights_offset_; }
  /// What travels along an edge that carries that part of the vectors.
  MessagePart carried(const PayloadPart& part) const {
    if (part == PayloadPart()) return {0, {0, message_bytes_}};
    const PayloadPart vectors = part.within(shape_.vectors_bytes());
    return {static_cast<std::size_t>(shape_.scalars) * sizeof(double),
            {data_offset_ + vectors.begin, data_offset_ + vectors.end}};
  }

  /// The payload in a slot that begins at `slot`.
  MutablePayload payload(std::byte* slot) const {
    return {slot + data_offset_, reinterpret_cast<double*>(slot), stride_bytes_,
            shape_.weights_bytes > 0 ? slot + weights_offset_ : nullptr};
  }

 private:
  /// Seven lines are more than kernels prefetch of a slot. 64 workers have 64 places.
  std::size_t place_in_page(int worker) const {
    constexpr std::size_t apart_bytes = 7 * cache_line_bytes;
    return spare_bytes_ == 0 ? 0 : static_cast<std::size_t>(worker) * apart_bytes % spare_bytes_;
  }

  PayloadShape shape_;
  bool keeps_copy_;
  std::size_t spare_bytes_;  ///< behind a message and a slot: no two that are pinned share a page
  std::size_t stride_bytes_, data_offset_, message_bytes_, weights_offset_, slot_bytes_;
};

inline Payload read_only(const MutablePayload& slot) {
  return {slot.data, slot.scalars, slot.stride_bytes, slot.weights};
}

class SlotBoard {
 public:
  SlotBoard(Region region, const PayloadShape& shape, bool keeps_copy = false);

  int workers() const { return static_cast<int>(region_.parts.size()); }
  const SlotLayout& layout() const { return layout_; }

  WorkerHeader& header(int worker) const {
    return *reinterpret_cast<WorkerHeader*>(region_.parts[static_cast<std::size_t>(worker)]);
  }
  // Of the slot of publication `sequence`: first round, last round, are there weights.
  std::atomic<std::int64_t>& round(int worker, std::uint64_t sequence) const {
    return header(worker).publication.rounds[sequence % slot_count];
  }
  std::atomic<std::int64_t>& until(int worker, std::uint64_t sequence) const {
    return header(worker).publication.until[sequence % slot_count];
  }
  std::atomic<std::uint8_t>& has_weights(int worker, std::uint64_t sequence) const {
    return header(worker).publication.has_weights[sequence % slot_count];
  }
  std::byte* slot(int worker, std::uint64_t sequence) const {
    return region_.parts[static_cast<std::size_t>(worker)] + layout_.slot_offset(worker, sequence);
  }
  /// Provides the memory of the messages in that worker's mirror, zeroed at first, if it is not
  /// there yet. Call it before anything is written to the mirror's slots: until then they may not
  /// be accessed. The system counts that memory now, and gives pages when they are first written.
  /// Throws Error(resource) if the system refuses it, then and in every later call.
  void provide_mirror(int worker) const;
  /// Throws that error if provide_mirror() has thrown it. Any thread may call it.
  void require_mirror(int worker) const;
  std::byte* kept(int worker) const {
    return region_.parts[static_cast<std::size_t>(worker)] + layout_.kept_offset(worker);
  }
  MutablePayload payload(int worker, std::uint64_t sequence) const {
    return layout_.payload(slot(worker, sequence));
  }

  /// The check after an optimistic read: true when all that was read of the slot belonged to the
  /// publication `sequence`, whose first round is `round`. Orders the loads before it.
  bool still_holds(int worker, std::uint64_t sequence, std::int64_t round) const {
    return exchange::still_holds(header(worker).publication, sequence, round);
  }
  /// The workers that have announced a failure, as their headers and mirrors show.
  std::vector<int> failed() const;
  /// True when the worker's newest publication is for later rounds than `round` and no slot has one
  /// for `round`.
  bool has_skipped(int worker, std::int64_t round) const;

 private:
  Region region_;
  SlotLayout layout_;
  std::unique_ptr<std::atomic<bool>[]> refused_;  ///< by worker: its mirror's memory
};

}  // namespace fast::exchange
