#include "train/ema.hpp"

#include <algorithm>
#include <cstring>
#include <fast/mixing/kernels.hpp>

#include "combine/element_work.hpp"

namespace fast::train {
namespace {

template <class T>
void approach(std::byte* average, const Segment& segment, double part) {
  T* const place = reinterpret_cast<T*>(average);
  const T* const weights = static_cast<const T*>(segment.data);
  const auto share = static_cast<T>(part);
  mixing::average(static_cast<T*>(nullptr), place, place, {&weights, 1}, {&share, 1},
                  segment.element_count);
}

/// The same on a device.
combine::ElementWork approach_there(std::byte* average, const Segment& segment, double part) {
  combine::ElementWork work;
  work.type = work.slot = segment.dtype;
  work.count = segment.element_count;
  work.average = true;
  work.sources = {segment.data};
  work.weights = {part};
  work.own = work.next = average;
  return work;
}

}  // namespace

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
  std::byte* const averages = on_device_ ? on_device_.get() : average_.data();
  for (const Segment& segment : layout.segments()) {
    std::byte* average = averages + segment.offset_bytes;
    if (on_device_) {
      accelerator_->run(approach_there(average, segment, part));
    } else if (segment.dtype == DType::f32) {
      approach<float>(average, segment, part);
    } else if (segment.dtype == DType::f64) {
      approach<double>(average, segment, part);
    } else {
      std::memcpy(average, segment.data, segment.size_bytes());
    }
  }
  if (on_device_) accelerator_->work()->settle();
  mixing::stream_fence();
}

}  // namespace fast::train
