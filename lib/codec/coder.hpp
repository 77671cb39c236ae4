// What a worker keeps to code its messages: their number, and what coding has lost of them.
#pragma once

#include <fast/codec/codec.hpp>
#include <fast/core/memory.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/block.hpp"
#include "codec/coded_layout.hpp"

namespace fast::codec {

/// Codes runs of elements, of codecs whose code of a run is that of its elements. T is the type of
/// computation: float or double.
class Coder {
 public:
  Coder() = default;
  /// Of messages of so many vectors. `feeds_back`: what coding lost is added to the next message,
  /// if the codec is made for that. What an element has lost lies at `widening` times its place in
  /// a model of `packed_bytes`.
  Coder(const Options& options, Kind kind, int vectors, bool feeds_back, std::size_t packed_bytes,
        std::size_t widening);

  void begin_message() { ++messages_; }
  /// Of random roundings of vector k of this message; none: they are to nearest.
  std::optional<std::uint32_t> rounding_key(int k) const;

  /// Codes the elements [first, first + count) of a piece of vector k.
  template <class T>
  void encode(const Piece& piece, int k, const T* values, std::size_t first, std::size_t count,
              std::byte* to);
  /// Codes vector k as a whole, from a packed one. 16-bit elements must travel as they are.
  void encode(const CodedLayout& layout, int k, const std::byte* packed, std::byte* coded);

  // For checkpoints.
  std::int64_t& messages() { return messages_; }
  const std::vector<AlignedBuffer>& errors();  ///< by vector; none: nothing is fed back

 private:
  Options options_;
  int vectors_ = 0;
  bool feeds_back_ = false;
  std::size_t packed_bytes_ = 0, widening_ = 1;
  std::int64_t messages_ = 0;
  std::vector<AlignedBuffer> errors_;  ///< made when it is needed
};

/// The message in force of a worker whose device does not code it: the host does.
struct HostMessage {
  CodedLayout layout;
  std::size_t packed_bytes;  ///< of a vector on the device
  std::size_t stride_bytes;  ///< from one coded vector to the next
  AlignedBuffer code;        ///< its vectors, as they lie in slots
  Coder coder{};
  bool is_given = false;  ///< `code` was written by hand, and is the next message

  std::byte* vector(int k) const {
    return code.data() + static_cast<std::size_t>(k) * stride_bytes;
  }
};

}  // namespace fast::codec
