#include "train/record/run_events.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/floating.hpp"

namespace fast::train {
namespace {

std::vector<float> floats_of(const TensorView& view) {
  std::vector<float> values(view.element_count());
  with_floating(view.dtype, [&]<class T>(T) {
    const T* from = static_cast<const T*>(view.data);
    std::ranges::transform(std::span(from, values.size()), values.begin(),
                           [](T value) { return static_cast<float>(as_double(value)); });
  });
  return values;
}

}  // namespace

void RunEvents::values(std::string_view prefix, const std::vector<TensorView>& tensors, int epoch,
                       std::int64_t round) const {
  if (!wants_values()) return;
  for (const TensorView& view : tensors) {
    if (view.role != Role::parameter || !is_floating(view.dtype)) continue;
    const std::vector<float> values = floats_of(view);
    observer_->on_values({fmt::format("{}{}", prefix, view.name), values, worker_, epoch, round});
  }
}

}  // namespace fast::train
