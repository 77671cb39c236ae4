#include "train/ema.hpp"

#include <algorithm>

#include "combine/moving_average.hpp"

namespace fast::train {

Ema::Ema(const ParameterLayout& layout, double decay, std::shared_ptr<Accelerator> accelerator)
    : decay_(decay), average_(layout.size_bytes()), accelerator_(std::move(accelerator)) {
  if (!accelerator_) {
    layout.gather(average_.data());
    return;
  }
  DeviceWork& work = *accelerator_->work();
  on_device_ = work.allocate(layout.size_bytes());
  for (const Segment& segment : layout.segments()) {
    work.copy(on_device_.get() + segment.offset_bytes, static_cast<const std::byte*>(segment.data),
              segment.size_bytes());
  }
  work.settle();
}

void Ema::transfer(std::byte* to, const std::byte* from) const {
  accelerator_->work()->copy(to, from, average_.size_bytes());
  accelerator_->work()->settle();
}

const AlignedBuffer& Ema::packed() {
  if (on_device_) transfer(average_.data(), on_device_.get());
  return average_;
}

std::vector<TensorView> Ema::state() {
  packed();
  return {view_of("packed", average_.as<std::uint8_t>()), view_of("steps", std::span(&steps_, 1))};
}

void Ema::take_state() {
  if (on_device_) transfer(on_device_.get(), average_.data());
}

void Ema::update(const ParameterLayout& layout) {
  ++steps_;
  const double part = 1 - std::min(decay_, (1 + steps_) / (10 + steps_));
  std::byte* const average = on_device_ ? on_device_.get() : average_.data();
  combine::move_average(average, layout, part, accelerator_.get());
}

}  // namespace fast::train
