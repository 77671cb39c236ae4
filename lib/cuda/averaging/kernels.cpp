#include <fast/core/error.hpp>
#include <fast/cuda/kernels.hpp>

#include "cuda/device/launch.hpp"
#include "cuda/device/runtime.hpp"
#include "nn/kernels/rules.hpp"

namespace fast::cuda {
namespace {

template <class T, class Stored>
void run(const Average<T, Stored>& work, const SgdStep<T>* step, const Stream& stream) {
  require(work.values.size() == work.weights.size(), ErrorKind::argument,
          "cuda: average of {} neighbors with {} weights; give one weight each", work.values.size(),
          work.weights.size());
  require(
      work.values.size() <= max_neighbors, ErrorKind::argument,
      "cuda: average of {} neighbors, at most {} are read on a device; choose a sparser topology",
      work.values.size(), max_neighbors);
  SgdLaunch<T> launch;
  if (step != nullptr) {
    nn::require_valid(step->options);
    require(step->momentum != nullptr || step->options.momentum == 0, ErrorKind::argument,
            "cuda: a step with momentum {} and no memory for it; give as many values as there are "
            "weights",
            step->options.momentum);
    launch = {nn::rule_of<T>(step->options), step->gradients, step->momentum};
  }
  const UseDevice use(stream.device());
  check(launch_average<T, Stored>(
            {work.current, work.next, work.own, work.values.data(), work.weights.data(),
             static_cast<int>(work.values.size()), work.count},
            step == nullptr ? nullptr : &launch, static_cast<cudaStream_t>(stream.handle())),
        fmt::format("averaging {} elements of {} neighbors", work.count, work.values.size()));
}

}  // namespace

void average(const Average<float, float>& work, const Stream& stream) {
  run<float, float>(work, nullptr, stream);
}
void average(const Average<double, double>& work, const Stream& stream) {
  run<double, double>(work, nullptr, stream);
}
void average(const Average<float, BFloat16>& work, const Stream& stream) {
  run<float, BFloat16>(work, nullptr, stream);
}
void average(const Average<float, float>& work, const SgdStep<float>& step, const Stream& stream) {
  run(work, &step, stream);
}
void average(const Average<double, double>& work, const SgdStep<double>& step,
             const Stream& stream) {
  run(work, &step, stream);
}
void average(const Average<float, BFloat16>& work, const SgdStep<float>& step,
             const Stream& stream) {
  run(work, &step, stream);
}

}  // namespace fast::cuda
