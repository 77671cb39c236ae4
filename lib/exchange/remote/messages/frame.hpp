// The messages between two neighbors on different hosts: frames, and payloads in or after them.
#pragma once

#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// What precedes or replaces a payload.
struct Frame {
  enum class Kind : std::uint32_t {
    counters,     ///< counters alone
    publication,  ///< a payload follows: in the frame's message, or in parts with a completion
    completion,   ///< all parts have been sent; is_intact says whether they are one payload
    extension,    ///< the latest publication is also for the rounds up to `until`
    status,       ///< the publisher's status, after all publications that the reader needs
    end,          ///< no more frames follow on this stream
  };
  Kind kind = Kind::counters;
  WorkerStatus status = WorkerStatus::starting;
  PeerCounters counters;
  std::int64_t first = 0, until = 0;  ///< rounds
  MessagePart part{0, {0, 0}};        ///< of the message: what follows
  bool is_intact = false;
};

inline constexpr int publication_tag = 0, counter_tag = 1, failure_tag = 3;

/// A payload of at most this length travels in the message of its frame, which costs a copy.
inline constexpr std::size_t inline_bytes = std::size_t{1} << 20;
/// A longer one follows in parts, none of which has a gap.
inline constexpr std::size_t part_bytes = std::size_t{1} << 20;

inline bool travels_inline(const SlotLayout& layout) {
  return layout.message_bytes() <= inline_bytes;
}
inline std::size_t longest_frame_message(const SlotLayout& layout) {
  return sizeof(Frame) + (travels_inline(layout) ? layout.message_bytes() : 0);
}

}  // namespace fast::exchange
