#include <algorithm>
#include <atomic>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/nn/cuda/optimizer.hpp>

#include "cuda/device/runtime.hpp"
#include "nn/cuda/layer_launch.hpp"
#include "nn/cuda/optimizer_elements.hpp"
#include "nn/cuda/optimizer_launch.hpp"
#include "nn/kernels/rules.hpp"

namespace fast::cuda {
namespace {

template <class T>
std::size_t slot_bytes(std::size_t count) {
  return round_up(count * sizeof(T), cache_line_bytes);
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

nn::OptimizerSpec valid(nn::OptimizerSpec spec) {
  nn::require_valid(spec);
  return spec;
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(nn::OptimizerSpec spec, std::size_t parameter_count, int device)
    : spec_(valid(spec)),
      count_(parameter_count),
      slots_(nn::state_slots(spec)),
      device_(device),
      id_(next_id()),
      rule_(std::max(sizeof(nn::SgdRule<T>), sizeof(nn::AdamRule<T>)), device),
      state_(slots_ * slot_bytes<T>(parameter_count), device) {}

template <class T>
T* Optimizer<T>::slot(std::size_t index) const {
  if (index >= slots_) return nullptr;
  return reinterpret_cast<T*>(state_.data() + index * slot_bytes<T>(count_));
}

template <class T>
void Optimizer<T>::require_own(const Stream& stream) const {
  require(stream.device() == device_, ErrorKind::argument,
          "cuda::Optimizer: made for device {}, the stream is one of device {}; make it there",
          device_, stream.device());
}

template <class T>
void Optimizer<T>::begin_step(const Stream& stream) {
  require_own(stream);
  const UseDevice use(device_);
  ++steps_;
  const auto store = [&](const auto& rule) {
    using Rule = std::decay_t<decltype(rule)>;
    check(launch_each(StoreRule<Rule>{rule, rule_.as<Rule>().data()},
                      static_cast<cudaStream_t>(stream.handle())),
          "an optimizer's rule");
  };
  if (const auto* sgd = std::get_if<nn::SgdOptions>(&spec_))
    store(nn::rule_of<T>(*sgd));
  else
    store(nn::rule_of<T>(std::get<nn::AdamOptions>(spec_), steps_));
}

template <class T>
void Optimizer<T>::apply(std::span<T> parameters, std::span<const T> gradients,
                         const Stream& stream) const {
  require(parameters.size() == count_ && gradients.size() == count_, ErrorKind::argument,
          "cuda::Optimizer: {} parameters and {} gradients given, made for {}", parameters.size(),
          gradients.size(), count_);
  require_own(stream);
  const UseDevice use(device_);
  const auto handle = static_cast<cudaStream_t>(stream.handle());
  if (std::holds_alternative<nn::SgdOptions>(spec_)) {
    check(launch_sgd(parameters.data(), rule_.as<const nn::SgdRule<T>>().data(), gradients.data(),
                     slot(0), count_, handle),
          "a step of SGD");
  } else {
    check(launch_adam(parameters.data(), rule_.as<const nn::AdamRule<T>>().data(), gradients.data(),
                      slot(0), slot(1), count_, handle),
          "a step of Adam");
  }
}

template <class T>
void Optimizer<T>::step(std::span<T> parameters, std::span<const T> gradients,
                        const Stream& stream) {
  begin_step(stream);
  apply(parameters, gradients, stream);
}

template <class T>
double Optimizer<T>::learning_rate() const {
  return std::visit([](const auto& o) { return o.learning_rate; }, spec_);
}

template <class T>
void Optimizer<T>::set_learning_rate(double learning_rate) {
  nn::OptimizerSpec changed = spec_;
  std::visit([&](auto& o) { o.learning_rate = learning_rate; }, changed);
  spec_ = valid(changed);
}

template <class T>
std::vector<TensorView> Optimizer<T>::state() {
  const auto view = [&](const char* name, std::size_t index) {
    TensorView made = view_of(name, std::span(slot(index), count_), Role::buffer);
    made.device = {Device::Kind::cuda, device_};
    return made;
  };
  if (slots_ == 0) return {};
  if (slots_ == 1) return {view("momentum", 0)};
  return {view("adam.m", 0),
          view("adam.v", 1),
          {"adam.steps", &steps_, {1}, DType::i64, Role::buffer, Device{}}};
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace fast::cuda
