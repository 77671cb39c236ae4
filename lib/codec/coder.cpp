#include "codec/coder.hpp"

#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <type_traits>

#include "core/floating.hpp"

namespace fast::codec {

Coder::Coder(const Options& options, Kind kind, int vectors, bool feeds_back,
             std::size_t packed_bytes, std::size_t widening)
    : options_(options),
      vectors_(vectors),
      feeds_back_(feeds_back && record_of(kind).feeds_back),
      packed_bytes_(packed_bytes),
      widening_(widening) {}

std::optional<std::uint32_t> Coder::rounding_key(int k) const {
  if (!options_.stochastic) return {};
  return static_cast<std::uint32_t>(mix_seed(options_.seed, static_cast<std::uint64_t>(messages_),
                                             static_cast<std::uint64_t>(k)));
}

const std::vector<AlignedBuffer>& Coder::errors() {
  for (int k = 0; feeds_back_ && std::ssize(errors_) < vectors_; ++k)
    errors_.emplace_back(widening_ * packed_bytes_);
  return errors_;
}

template <class T>
void Coder::encode(const Piece& piece, int k, const T* values, std::size_t first, std::size_t count,
                   std::byte* to) {
  const Rounding rounding{rounding_key(k), piece.first + first};
  if (!feeds_back_) return codec::encode(piece.kind, values, count, to, rounding);
  std::byte* error = errors()[static_cast<std::size_t>(k)].data();
  error += widening_ * piece.segment.offset_bytes;
  encode_with_feedback(piece.kind, values, reinterpret_cast<T*>(error) + first, count, to,
                       rounding);
}

template void Coder::encode(const Piece&, int, const float*, std::size_t, std::size_t, std::byte*);
template void Coder::encode(const Piece&, int, const double*, std::size_t, std::size_t, std::byte*);

void Coder::encode(const CodedLayout& layout, int k, const std::byte* packed, std::byte* coded) {
  for (const Piece& piece : layout.pieces()) {
    const std::byte* from = packed + piece.segment.offset_bytes;
    std::byte* to = coded + piece.offset_bytes;
    if (piece.kind == Kind::identity) {
      std::memcpy(to, from, piece.segment.size_bytes());
      continue;
    }
    with_floating(piece.segment.dtype, [&]<class T>(T) {
      if constexpr (std::is_floating_point_v<T>) {
        encode(piece, k, reinterpret_cast<const T*>(from), 0, piece.segment.element_count, to);
      } else {
        fail(ErrorKind::internal, "codec: 16-bit elements in a packed vector that is coded");
      }
    });
  }
}

}  // namespace fast::codec
