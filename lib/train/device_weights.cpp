// Training of a replica whose weights are averaged on the device that it computes on.
#include <set>

#include "train/training_run.hpp"

namespace fast::train {

/// Where options do not fit a device, its mirror is averaged, as any host memory.
void Training::choose_device(const WorkerOptions& options) {
  if (!why_not_on_device(options).empty()) return;
  device_ = dynamic_cast<DeviceReplica*>(&backend_);
}

WorkerOptions Training::on_device(WorkerOptions options) const {
  if (device_ != nullptr) options.accelerator = device_->accelerate();
  return options;
}

std::vector<TensorView> Training::worker_tensors() const {
  return device_ == nullptr ? backend_.parameters() : device_->device_parameters();
}

ParameterLayout Training::host_layout() const {
  if (device_ == nullptr) return worker_->layout();
  std::set<std::string> taking_part;
  for (const TensorView& view : worker_->layout().views()) taking_part.insert(view.name);
  std::vector<TensorView> mirror = backend_.parameters();
  std::erase_if(mirror, [&](const TensorView& view) { return !taking_part.contains(view.name); });
  return ParameterLayout(std::move(mirror));
}

/// Where the weights are that are averaged.
void Training::begin_ema() {
  if (options_.ema_decay == 0) return;
  ema_.emplace(worker_->layout(), options_.ema_decay,
               device_ == nullptr ? nullptr : device_->accelerate());
}

void Training::download() const {
  if (device_ != nullptr) device_->download();
}

void Training::upload() const {
  if (device_ != nullptr) device_->upload();
}

}  // namespace fast::train
