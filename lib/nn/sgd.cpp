#include <cmath>
#include <fast/core/error.hpp>
#include <fast/nn/sgd.hpp>

#include "nn/cpu.hpp"
#include "nn/kernels/kernels.hpp"

namespace fast::nn {
namespace {

void check(const SgdOptions& o) {
  require(std::isfinite(o.learning_rate) && o.learning_rate >= 0, ErrorKind::argument,
          "Sgd: learning rate {} is not a finite number from 0 on", o.learning_rate);
  require(o.momentum >= 0 && o.momentum < 1, ErrorKind::argument,
          "Sgd: momentum {} is not in [0, 1)", o.momentum);
  require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, ErrorKind::argument,
          "Sgd: weight decay {} is not a finite number from 0 on", o.weight_decay);
}

}  // namespace

template <class T>
Sgd<T>::Sgd(SgdOptions options, std::size_t parameter_count)
    : options_(options),
      count_(parameter_count),
      momentum_(options.momentum > 0 ? parameter_count * sizeof(T) : 0) {
  check(options);
  require_processor(processor_fits());
}

template <class T>
void Sgd<T>::step(std::span<T> parameters, std::span<const T> gradients) {
  require(parameters.size() == count_ && gradients.size() == count_, ErrorKind::argument,
          "Sgd: {} parameters and {} gradients given, made for {}", parameters.size(),
          gradients.size(), count_);
  sgd_step(parameters.data(), gradients.data(), momentum().data(), count_,
           static_cast<T>(options_.learning_rate), static_cast<T>(options_.momentum),
           static_cast<T>(options_.weight_decay));
}

template <class T>
void Sgd<T>::set_learning_rate(double learning_rate) {
  SgdOptions changed = options_;
  changed.learning_rate = learning_rate;
  check(changed);
  options_ = changed;
}

template class Sgd<float>;
template class Sgd<double>;

}  // namespace fast::nn
