// A backend whose weights are on a device that is the host (see host_accelerator.hpp): it computes
// with those, and its mirror is of no use unless somebody brings it up to date.
#pragma once

#include <cstring>
#include <fast/backend/backend.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/worker/device_replica.hpp>
#include <limits>
#include <memory>
#include <vector>

#include "support/host_accelerator.hpp"

namespace fast::testing {

/// `inner` computes, in doubles, in memory that nobody else sees.
class DeviceBackend final : public Backend, public DeviceReplica {
 public:
  explicit DeviceBackend(std::unique_ptr<Backend> inner, std::size_t device_bytes = 4 << 20)
      : inner_(std::move(inner)),
        device_(std::make_shared<HostAccelerator>(Sharing{}, device_bytes)) {
    for (const TensorView& view : inner_->parameters()) {
      const auto* values = static_cast<const double*>(view.data);
      mirror_.emplace_back(values, values + view.element_count());
      memory_.push_back(device_->work()->allocate(view.size_bytes()));
    }
    upload();
  }

  std::string name() const override { return inner_->name(); }
  std::vector<TensorView> parameters() override {
    std::vector<TensorView> views = inner_->parameters();
    for (std::size_t k = 0; k < views.size(); ++k) views[k].data = mirror_[k].data();
    return views;
  }
  double train(const Batch& batch, const GradientHook& hook) override {
    begin();
    const double loss = inner_->train(batch, hook);
    copy_all([this](std::size_t k) { return std::pair{device(k), inner(k)}; });
    if (mirrors_) {
      download();
    } else {
      for (auto& values : mirror_) {
        values.assign(values.size(), std::numeric_limits<double>::quiet_NaN());
      }
    }
    return loss;
  }
  Evaluation evaluate(const Batch& batch) override {
    begin();
    return inner_->evaluate(batch);
  }
  void set_learning_rate(double learning_rate) override {
    inner_->set_learning_rate(learning_rate);
  }
  std::vector<TensorView> optimizer_state() override { return inner_->optimizer_state(); }

  std::shared_ptr<Accelerator> accelerate() override {
    if (std::exchange(mirrors_, false)) upload();
    return device_;
  }
  std::vector<TensorView> device_parameters() override {
    std::vector<TensorView> views = inner_->parameters();
    for (std::size_t k = 0; k < views.size(); ++k) {
      views[k].data = memory_[k].get();
      views[k].device = device_->device();
    }
    return views;
  }
  void download() override {
    copy_all([this](std::size_t k) { return std::pair{image(k), device(k)}; });
  }
  void upload() override {
    copy_all([this](std::size_t k) { return std::pair{device(k), image(k)}; });
  }
  void keep_mirror() override {
    download();
    mirrors_ = true;
  }
  bool mirrors() const { return mirrors_; }

 private:
  std::byte* image(std::size_t k) { return reinterpret_cast<std::byte*>(mirror_[k].data()); }
  std::byte* device(std::size_t k) { return memory_[k].get(); }
  std::byte* inner(std::size_t k) { return static_cast<std::byte*>(inner_->parameters()[k].data); }
  void begin() {
    if (mirrors_) upload();
    copy_all([this](std::size_t k) { return std::pair{inner(k), device(k)}; });
  }
  template <class ToAndFrom>
  void copy_all(const ToAndFrom& to_and_from) {
    for (std::size_t k = 0; k < mirror_.size(); ++k) {
      const auto [to, from] = to_and_from(k);
      device_->work()->copy(to, from, mirror_[k].size() * sizeof(double));
    }
    device_->work()->settle();
  }

  std::unique_ptr<Backend> inner_;
  std::shared_ptr<HostAccelerator> device_;
  std::vector<std::vector<double>> mirror_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  bool mirrors_ = true;
};

}  // namespace fast::testing
