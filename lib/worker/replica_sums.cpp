#include "worker/replica_sums.hpp"

#include <algorithm>
#include <cstring>
#include <fast/codec/block.hpp>
#include <fast/mixing/kernels.hpp>

namespace fast::worker {

std::size_t element_count(const ParameterLayout& layout) {
  std::size_t count = 0;
  for (const Segment& segment : layout.segments()) count += segment.element_count;
  return count;
}

std::vector<ElementBlock> blocks_of(const ParameterLayout& layout, std::size_t first,
                                    std::size_t last, std::size_t most) {
  std::vector<ElementBlock> blocks;
  std::size_t before = 0;  // elements of the segments before
  for (const Segment& segment : layout.segments()) {
    const std::size_t end = std::min(last, before + segment.element_count);
    for (std::size_t e = std::max(first, before); e < end;) {
      const std::size_t count = std::min(most, end - e);
      blocks.push_back({segment.offset_bytes + (e - before) * size_bytes(segment.dtype), count,
                        segment.dtype, segment.role});
      e += count;
    }
    before += segment.element_count;
  }
  return blocks;
}

void ReplicaSums::begin(std::span<const ElementBlock> blocks) {
  blocks_.assign(blocks.begin(), blocks.end());
  std::size_t elements = 0, longest = 0;
  for (const ElementBlock& block : blocks) {
    elements += block.element_count;
    const bool is_short = size_bytes(block.dtype) == sizeof(BFloat16);
    if (is_short) longest = std::max(longest, block.element_count);
  }
  if (wanted_.mean) sums_.assign(elements, 0);
  if (wanted_.distance) {
    differences_.assign(elements, 0);
    first_.resize(elements * sizeof(double));
  }
  widened_.resize(longest);
  squares_ = 0;
  count_ = 0;
}

void ReplicaSums::add(const std::byte* values) {
  ++count_;
  std::size_t at = 0;
  for (const ElementBlock& block : blocks_) {
    const std::byte* from = values + (block.offset_bytes - blocks_.front().offset_bytes);
    switch (block.dtype) {
      case DType::f32:
        add(reinterpret_cast<const float*>(from), block, at);
        break;
      case DType::f64:
        add(reinterpret_cast<const double*>(from), block, at);
        break;
      case DType::bf16:
        codec::widen(widened_.data(), reinterpret_cast<const BFloat16*>(from), block.element_count);
        add(widened_.data(), block, at);
        break;
      default:
        codec::widen(widened_.data(), reinterpret_cast<const Float16*>(from), block.element_count);
        add(widened_.data(), block, at);
        break;
    }
    at += block.element_count;
  }
}

template <class T>
void ReplicaSums::add(const T* values, const ElementBlock& block, std::size_t at) {
  if (wanted_.mean) mixing::add(sums_.data() + at, values, block.element_count);
  if (!wanted_.distance || block.role != Role::parameter) return;
  T* first = reinterpret_cast<T*>(first_.data() + at * sizeof(double));
  if (count_ == 1) std::memcpy(first, values, block.element_count * sizeof(T));
  squares_ += mixing::add_differences(differences_.data() + at, values, first, block.element_count);
}

void ReplicaSums::store_mean(std::byte* to) const {
  const double* sums = sums_.data();
  for (const ElementBlock& block : blocks_) {
    std::byte* at = to + (block.offset_bytes - blocks_.front().offset_bytes);
    const std::size_t count = block.element_count;
    if (block.dtype == DType::f64) {
      mixing::divide(reinterpret_cast<double*>(at), sums, count_, count);
    } else if (block.dtype == DType::f32) {
      mixing::divide(reinterpret_cast<float*>(at), sums, count_, count);
    } else {
      mixing::divide(widened_.data(), sums, count_, count);
      if (block.dtype == DType::bf16) {
        codec::narrow(reinterpret_cast<BFloat16*>(at), widened_.data(), count);
      } else {
        codec::narrow(reinterpret_cast<Float16*>(at), widened_.data(), count);
      }
    }
    sums += count;
  }
}

/// Around the first replica r: mean ‖x_i - r‖² - ‖x̄ - r‖².
double ReplicaSums::mean_square() const {
  const double workers = count_;
  const double of_mean = mixing::sum_of_squares(differences_.data(), differences_.size());
  return squares_ / workers - of_mean / (workers * workers);
}

}  // namespace fast::worker
