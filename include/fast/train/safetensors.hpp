// Models on disk in the safetensors format (https://github.com/huggingface/safetensors): the
// header's length in eight bytes, little-endian, a JSON header, and the tensors one after the other
// without gaps. Compatible with the `safetensors` packages of other languages.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::train {

/// Longer headers are refused. This is enough for about 100,000 tensors.
inline constexpr std::size_t most_header_bytes = std::size_t{16} << 20;

using Metadata = std::map<std::string, std::string>;

/// A tensor of a file; its bytes begin at `offset` of the data behind the header.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< in the order of their bytes
  Metadata metadata;
  std::size_t data_offset_bytes = 0;  ///< of the first tensor in the file
};

/// The header of a file of `file_bytes`. `beginning` holds at least the length and the whole
/// header. Needs memory in proportion to the header. Throws Error(data), with `file` and what is
/// wrong, unless the tensors cover the data exactly.
SafetensorsHeader parse_safetensors(std::span<const std::byte> beginning, std::uint64_t file_bytes,
                                    std::string_view file);

/// A file in memory.
class Safetensors {
 public:
  /// Throws Error(data) when there is no such file, or as parse_safetensors() does.
  explicit Safetensors(const std::filesystem::path& path);

  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  /// Null when there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  /// Valid as long as this object.
  std::span<const std::byte> data(const StoredTensor& tensor) const;
  /// The tensors whose names begin with `prefix`, by their names without it, in the file's memory:
  /// valid as long as this object, and not to be changed.
  std::vector<TensorView> views(std::string_view prefix = {}) const;
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }  ///< the whole file

  /// Copies the tensors of the views' names to the views' memory. Throws Error(data), before it
  /// copies anything, when a tensor is missing or has another shape or type.
  void read(const std::vector<TensorView>& views) const;

 private:
  std::string file_;
  AlignedBuffer bytes_;
  std::size_t size_ = 0;
  SafetensorsHeader header_;
};

/// Copies the tensors of the views' names from `from` to the memory of `to`. Throws as
/// Safetensors::read(); `file` is the name in the message.
void copy_tensors(const std::vector<TensorView>& from, const std::vector<TensorView>& to,
                  std::string_view file);

/// The beginning of a file with these tensors: length and header.
std::string safetensors_header(const std::vector<TensorView>& tensors, const Metadata& metadata);

/// Writes to a temporary file beside `path`, waits until it is on disk and renames it, so that
/// `path` is whole or untouched. Throws Error(resource) when the file cannot be written.
void save_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                      const Metadata& metadata = {});

}  // namespace fast::train
