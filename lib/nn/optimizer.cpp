#include <cmath>
#include <fast/core/error.hpp>
#include <fast/nn/optimizer.hpp>

#include "nn/checks.hpp"
#include "nn/kernels/kernels.hpp"
#include "nn/kernels/rules.hpp"

namespace fast::nn {
namespace {

void check_not_negative(double value, const char* what) {
  require(std::isfinite(value) && value >= 0, ErrorKind::argument,
          "Optimizer: {} {} is not a finite number from 0 on", what, value);
}

void check_fraction(double value, const char* what) {
  require(value >= 0 && value < 1, ErrorKind::argument, "Optimizer: {} {} is not in [0, 1)", what,
          value);
}

void check(const SgdOptions& o) {
  check_not_negative(o.learning_rate, "learning rate");
  check_fraction(o.momentum, "momentum");
  check_not_negative(o.weight_decay, "weight decay");
  require(!o.nesterov || o.momentum > 0, ErrorKind::argument,
          "Optimizer: Nesterov's form without momentum; give a momentum or leave it out");
}

void check(const AdamOptions& o) {
  check_not_negative(o.learning_rate, "learning rate");
  check_fraction(o.beta1, "beta1");
  check_fraction(o.beta2, "beta2");
  check_not_negative(o.weight_decay, "weight decay");
  require(std::isfinite(o.epsilon) && o.epsilon > 0, ErrorKind::argument,
          "Optimizer: epsilon {} is not a positive number", o.epsilon);
}

}  // namespace

void require_valid(const OptimizerSpec& spec) {
  std::visit([](const auto& o) { check(o); }, spec);
}

std::size_t state_slots(const OptimizerSpec& spec) {
  const auto* sgd = std::get_if<SgdOptions>(&spec);
  return sgd == nullptr ? 2 : sgd->momentum > 0 ? 1 : 0;
}

OptimizerSpec optimizer_spec(std::string_view name) {
  if (name == "sgd") return SgdOptions{};
  if (name == "adam") return AdamOptions{};
  if (name == "adamw") return AdamOptions{.weight_decay = 0.01, .decoupled_decay = true};
  fail(ErrorKind::argument, "optimizer: \"{}\" is unknown; choose sgd, adam or adamw", name);
}

template <class T>
Optimizer<T>::Optimizer(OptimizerSpec spec, std::size_t parameter_count)
    : spec_(spec),
      count_(parameter_count),
      slots_(state_slots(spec)),
      state_(slots_ * round_up(parameter_count * sizeof(T), cache_line_bytes)) {
  require_valid(spec_);
  require_processor(processor_fits());
}

template <class T>
std::span<T> Optimizer<T>::slot(std::size_t index) {
  if (index >= slots_) return {};
  return state_.as<T>().subspan(index * (state_.size_bytes() / sizeof(T) / slots_), count_);
}

template <class T>
void Optimizer<T>::check_range(std::size_t first, std::size_t weights,
                               std::size_t gradients) const {
  require(weights == gradients && first <= count_ && weights <= count_ - first, ErrorKind::argument,
          "Optimizer: {} parameters and {} gradients given from place {} on, made for {}", weights,
          gradients, first, count_);
}

template <class T>
void Optimizer<T>::run(std::size_t first, const T* parameters, const T* gradients, T* out,
                       std::size_t count, bool add) {
  T* a = slots_ > 0 ? slot(0).data() + first : nullptr;
  T* b = slots_ > 1 ? slot(1).data() + first : nullptr;
  if (const auto* sgd = std::get_if<SgdOptions>(&spec_))
    sgd_delta(rule_of<T>(*sgd), parameters, gradients, a, out, count, add);
  else
    adam_delta(rule_of<T>(std::get<AdamOptions>(spec_), steps_), parameters, gradients, a, b, out,
               count, add);
}

template <class T>
void Optimizer<T>::write_delta(std::size_t first, std::span<const T> parameters,
                               std::span<const T> gradients, std::span<T> delta) {
  check_range(first, parameters.size(), gradients.size());
  check_range(first, parameters.size(), delta.size());
  run(first, parameters.data(), gradients.data(), delta.data(), delta.size(), false);
}

template <class T>
void Optimizer<T>::add_delta(std::size_t first, std::span<T> parameters,
                             std::span<const T> gradients) {
  check_range(first, parameters.size(), gradients.size());
  run(first, parameters.data(), gradients.data(), parameters.data(), parameters.size(), true);
}

template <class T>
void Optimizer<T>::step(std::span<T> parameters, std::span<const T> gradients) {
  require(parameters.size() == count_ && gradients.size() == count_, ErrorKind::argument,
          "Optimizer: {} parameters and {} gradients given, made for {}", parameters.size(),
          gradients.size(), count_);
  begin_step();
  add_delta(0, parameters, gradients);
}

template <class T>
double Optimizer<T>::learning_rate() const {
  return std::visit([](const auto& o) { return o.learning_rate; }, spec_);
}

template <class T>
void Optimizer<T>::set_learning_rate(double learning_rate) {
  check_not_negative(learning_rate, "learning rate");
  std::visit([&](auto& o) { o.learning_rate = learning_rate; }, spec_);
}

template <class T>
std::vector<TensorView> Optimizer<T>::state() {
  if (slots_ == 0) return {};
  if (slots_ == 1) return {view_of("momentum", slot(0), Role::buffer)};
  return {view_of("adam.m", slot(0), Role::buffer),
          view_of("adam.v", slot(1), Role::buffer),
          {"adam.steps", &steps_, {1}, DType::i64, Role::buffer, Device{}}};
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace fast::nn
