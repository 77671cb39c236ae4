// Sums over replicas, for their mean and their distance from it, a range of elements at a time.
#pragma once

#include <cstddef>
#include <fast/core/layout.hpp>
#include <span>
#include <vector>

namespace fast::worker {

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
  /// `values`: a replica's bytes from the first block's offset on.
  void add(const std::byte* values);
  int count() const { return count_; }

  /// Writes the mean; `to` is where the first block begins.
  void store_mean(std::byte* to) const;
  /// Σ_e mean_i (x_ie - x̄_e)², over parameters. May be slightly below 0.
  double mean_square() const;

 private:
  template <class T>
  void add(const T* values, const ElementBlock& block, std::size_t at);

  Wanted wanted_;
  std::vector<ElementBlock> blocks_;
  std::vector<double> sums_;         ///< of all values
  std::vector<double> differences_;  ///< sums of the differences from the first replica
  std::vector<std::byte> first_;     ///< that replica's values as T, eight bytes each
  mutable std::vector<float> widened_;
  double squares_ = 0;  ///< of the differences
  int count_ = 0;
};

}  // namespace fast::worker
