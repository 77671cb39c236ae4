#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <limits>

#include "codec/block.hpp"
#include "codec/coded_layout.hpp"
#include "core/floating.hpp"

namespace fast::codec {
namespace {

Kind kind_for(const Segment& segment, Kind kind) {
  const bool stays = record_of(kind).keeps_halves && size_bytes(segment.dtype) <= 2;
  return segment.role == Role::buffer || stays ? Kind::identity : kind;
}

std::size_t bytes_of(const Piece& piece, std::size_t count) {
  return piece.kind == Kind::identity ? count * size_bytes(piece.segment.dtype)
                                      : coded_bytes(piece.kind, count);
}

/// Of the entries of parameters that travel alone.
std::size_t value_bytes(const ParameterLayout& layout) {
  const auto& segments = layout.segments();
  const bool doubles = std::ranges::any_of(segments, [](const Segment& segment) {
    return segment.role == Role::parameter && segment.dtype == DType::f64;
  });
  return doubles ? sizeof(double) : sizeof(float);
}

template <class Stored>
void decode_piece(const Piece& piece, const std::byte* coded, Stored* to) {
  const std::size_t count = piece.segment.element_count;
  if constexpr (std::is_floating_point_v<Stored>) {
    decode(piece.kind, coded + piece.offset_bytes, count, to);
  } else {
    float values[group_elements];
    for (std::size_t first = 0; first < count; first += group_elements) {
      const std::size_t length = std::min(group_elements, count - first);
      decode(piece.kind, coded + piece.code_offset(first), length, values);
      narrow(to + first, values, length);
    }
  }
}

}  // namespace

std::size_t Piece::code_offset(std::size_t element) const {
  return offset_bytes + bytes_of(*this, element);
}
std::size_t Piece::code_bytes(std::size_t count) const { return bytes_of(*this, count); }

CodedLayout::CodedLayout(const ParameterLayout& layout, Kind kind, std::size_t sparse_capacity,
                         Kind entry_code)
    : kind_(kind) {
  if (kind == Kind::sparse) {
    require(layout.parameter_count() <= std::numeric_limits<std::uint32_t>::max(),
            ErrorKind::argument,
            "codec sparse: the model has {} parameters, its indices reach {}; take another rule",
            layout.parameter_count(), std::numeric_limits<std::uint32_t>::max());
    sparse_ = {sparse_capacity, value_bytes(layout), entry_code, layout.parameter_count()};
    size_bytes_ = sparse_.size_bytes();
  }
  place(layout);
}

CodedLayout::CodedLayout(const ParameterLayout& layout, const SelectedShape& selected)
    : kind_(Kind::selected), selected_(selected) {
  selected_.elements = layout.parameter_count();
  selected_.value_bytes = selected_.code == Kind::identity ? value_bytes(layout) : sizeof(BFloat16);
  size_bytes_ = selected_.size_bytes();
  place(layout);
}

void CodedLayout::place(const ParameterLayout& layout) {
  std::uint64_t first = 0;
  const Segment* last = nullptr;
  const bool by_tensor = record_of(kind_).by_tensor;
  const std::vector<Segment> tensors = by_tensor ? layout.tensors() : std::vector<Segment>();
  for (const Segment& segment : by_tensor ? tensors : layout.segments()) {
    Piece piece{segment, kind_for(segment, kind_), size_bytes_, first};
    const bool same_group =
        last != nullptr && last->role == segment.role && last->dtype == segment.dtype;
    if (piece.kind == Kind::sparse || piece.kind == Kind::selected) {
      piece.offset_bytes = 0;
    } else {
      piece.offset_bytes = round_up(size_bytes_, same_group ? sizeof(float) : cache_line_bytes);
      if (!record_of(piece.kind).by_tensor && same_group) piece.offset_bytes = size_bytes_;
      size_bytes_ = piece.offset_bytes + bytes_of(piece, segment.element_count);
    }
    if (segment.role == Role::parameter) first += segment.element_count;
    last = &segment;
    pieces_.push_back(piece);
  }
}

void decode(const CodedLayout& layout, const std::byte* coded, std::byte* packed) {
  for (const Piece& piece : layout.pieces()) {
    std::byte* to = packed + piece.segment.offset_bytes;
    if (piece.kind == Kind::identity) {
      std::memcpy(to, coded + piece.offset_bytes, piece.segment.size_bytes());
      continue;
    }
    with_floating(piece.segment.dtype,
                  [&]<class T>(T) { decode_piece(piece, coded, reinterpret_cast<T*>(to)); });
  }
}

}  // namespace fast::codec
