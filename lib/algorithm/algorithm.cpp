#include <algorithm>
#include <fast/algorithm/algorithm.hpp>

namespace fast::algorithm {

std::size_t Sparsity::of(std::size_t parameter_count) const {
  const auto share = static_cast<std::size_t>(fraction * static_cast<double>(parameter_count));
  const std::size_t wanted = entries > 0 ? static_cast<std::size_t>(entries) : share;
  return std::min(std::max<std::size_t>(1, wanted), parameter_count);
}

}  // namespace fast::algorithm
