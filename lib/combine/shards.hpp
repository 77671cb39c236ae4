// Shards of a model: about equal parts of its packed vector, each of which a schedule may give
// weights of its own.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/exchange/exchange.hpp>

#include <algorithm>
#include <optional>

#include "codec/coded_layout.hpp"

namespace fast::combine {

/// Shard `shard` of `shards`. Shards begin at multiples of 64 bytes, and so between elements. Those
/// of a small model may be empty.
inline PayloadPart shard_part(std::size_t vector_bytes, std::size_t shards, std::size_t shard) {
  const auto begin = [&](std::size_t s) {
    const std::size_t lines = round_up(vector_bytes, cache_line_bytes) / cache_line_bytes;
    return lines / shards * s + lines % shards * s / shards;
  };
  return PayloadPart{begin(shard) * cache_line_bytes, begin(shard + 1) * cache_line_bytes}.within(
      vector_bytes);
}

/// What of a piece, coded as it is, lies in that part of the vector.
inline std::optional<codec::Piece> piece_within(codec::Piece piece, const PayloadPart& part) {
  Segment& segment = piece.segment;
  const std::size_t begin = std::max(part.begin, piece.offset_bytes);
  const std::size_t end = std::min(part.end, piece.offset_bytes + segment.size_bytes());
  if (begin >= end) return std::nullopt;
  const std::size_t skipped = begin - piece.offset_bytes;
  segment.data = static_cast<std::byte*>(segment.data) + skipped;
  segment.offset_bytes += skipped;
  segment.element_count = (end - begin) / size_bytes(segment.dtype);
  piece.offset_bytes = begin;
  piece.first += skipped / size_bytes(segment.dtype);
  return piece;
}

}  // namespace fast::combine
