#include "train/ema.hpp"

#include <algorithm>
#include <cstring>

namespace fast::train {
namespace {

template <class T>
void approach(std::byte* average, const std::byte* weights, std::size_t count, double part) {
  T* to = reinterpret_cast<T*>(average);
  const T* from = reinterpret_cast<const T*>(weights);
  for (std::size_t e = 0; e < count; ++e) to[e] += static_cast<T>(part) * (from[e] - to[e]);
}

}  // namespace

Ema::Ema(const ParameterLayout& layout, double decay)
    : decay_(decay), average_(layout.size_bytes()), weights_(layout.size_bytes()) {
  layout.gather(average_.data());
}

std::vector<TensorView> Ema::state() {
  return {view_of("packed", average_.as<std::uint8_t>()), view_of("steps", std::span(&steps_, 1))};
}

void Ema::update(const ParameterLayout& layout) {
  layout.gather(weights_.data());
  ++steps_;
  const double part = 1 - std::min(decay_, (1 + steps_) / (10 + steps_));
  for (const Segment& segment : layout.segments()) {
    std::byte* average = average_.data() + segment.offset_bytes;
    const std::byte* weights = weights_.data() + segment.offset_bytes;
    if (segment.dtype == DType::f32) {
      approach<float>(average, weights, segment.element_count, part);
    } else if (segment.dtype == DType::f64) {
      approach<double>(average, weights, segment.element_count, part);
    } else {
      std::memcpy(average, weights, segment.element_count * size_bytes(segment.dtype));
    }
  }
}

}  // namespace fast::train
