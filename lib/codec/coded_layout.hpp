// Where the tensors of a model lie in a coded vector.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <vector>

#include "codec/block.hpp"
#include "codec/sparse.hpp"

namespace fast::codec {

/// A run of a model's elements, contiguous in its memory, and where its code lies.
struct Piece {
  Segment segment;
  Kind kind = Kind::identity;
  std::size_t offset_bytes = 0;  ///< in the coded vector
  std::uint64_t first = 0;  ///< index of its first element among the parameters (not of buffers)

  /// The code of the elements [element, element + count): element a multiple of group_elements. Not
  /// of sparse pieces.
  std::size_t code_offset(std::size_t element) const;
  std::size_t code_bytes(std::size_t count) const;
};

/// Like ParameterLayout: offsets follow from names, shapes and types in their order alone. Buffers
/// are never coded. 16-bit kinds do not code 16-bit parameters. In int8, each tensor has scales of
/// its own.
class CodedLayout {
 public:
  CodedLayout() = default;
  /// Kind::sparse alone uses `sparse_capacity`, the entries of a message, and `entry_code`, the
  /// code of their values. Throws Error(argument) when the model has too many parameters for its
  /// 32-bit indices.
  CodedLayout(const ParameterLayout& layout, Kind kind, std::size_t sparse_capacity = 0,
              Kind entry_code = Kind::identity);
  /// Makes a layout of Kind::selected. `elements` and `value_bytes` of the shape follow from the
  /// layout.
  CodedLayout(const ParameterLayout& layout, const SelectedShape& selected);

  Kind kind() const { return kind_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::size_t size_bytes() const { return size_bytes_; }       ///< of one coded vector
  const SparseShape& sparse() const { return sparse_; }        ///< lies at the vector's beginning
  const SelectedShape& selected() const { return selected_; }  ///< likewise

 private:
  void place(const ParameterLayout& layout);

  Kind kind_ = Kind::identity;
  std::vector<Piece> pieces_;
  std::size_t size_bytes_ = 0;
  SparseShape sparse_;
  SelectedShape selected_;
};

/// Decodes a whole vector to a packed one of the same layout (not of Kind::sparse or selected).
void decode(const CodedLayout& layout, const std::byte* coded, std::byte* packed);

}  // namespace fast::codec
