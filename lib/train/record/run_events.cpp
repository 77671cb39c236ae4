#include "train/record/run_events.hpp"

#include <fmt/core.h>

#include <fast/core/element.hpp>
#include <vector>

namespace fast::train {
namespace {

template <class T>
float float_of(T value) {
  if constexpr (requires { to_float(value); }) {
    return to_float(value);
  } else {
    return static_cast<float>(value);
  }
}

template <class T>
std::vector<float> floats_of(const TensorView& view) {
  const auto* from = static_cast<const T*>(view.data);
  std::vector<float> values(view.element_count());
  for (std::size_t e = 0; e < values.size(); ++e) values[e] = float_of(from[e]);
  return values;
}

std::vector<float> floats_of(const TensorView& view) {
  switch (view.dtype) {
    case DType::f32:
      return floats_of<float>(view);
    case DType::f64:
      return floats_of<double>(view);
    case DType::bf16:
      return floats_of<BFloat16>(view);
    case DType::f16:
      return floats_of<Float16>(view);
    default:
      return {};
  }
}

}  // namespace

void RunEvents::values(std::string_view prefix, const std::vector<TensorView>& tensors, int epoch,
                       std::int64_t round) const {
  if (!wants_values()) return;
  for (const TensorView& view : tensors) {
    if (view.role != Role::parameter) continue;
    const std::vector<float> values = floats_of(view);
    observer_->on_values({fmt::format("{}{}", prefix, view.name), values, worker_, epoch, round});
  }
}

}  // namespace fast::train
