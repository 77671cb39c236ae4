#include <fmt/format.h>

#include "algorithm/mixer.hpp"

namespace fast::algorithm {

std::vector<TensorView> Mixer::state() {
  std::vector<TensorView> views{view_of("mixer.messages", std::span(&messages_, 1))};
  const auto add = [&](const char* name, const std::vector<AlignedBuffer>& buffers) {
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      views.push_back(view_of(fmt::format("mixer.{}.{}", name, k), buffers[k].as<std::uint8_t>()));
    }
  };
  add("state", state_);
  add("sent", sent_);
  add("error", errors_);
  for (TensorView& view : algorithm_->state()) views.push_back(std::move(view));
  return views;
}

}  // namespace fast::algorithm
