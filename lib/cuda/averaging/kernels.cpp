#include <fast/core/error.hpp>
#include <fast/cuda/kernels.hpp>

#include "cuda/averaging/average_launch.hpp"
#include "cuda/device/runtime.hpp"

namespace fast::cuda {
namespace {

static_assert(max_neighbors == most_averaged);

template <class T, class Stored>
void run(const Average<T, Stored>& work, const Stream& stream) {
  require(work.values.size() == work.weights.size(), ErrorKind::argument,
          "cuda: average of {} neighbors with {} weights; give one weight each", work.values.size(),
          work.weights.size());
  require(
      work.values.size() <= max_neighbors, ErrorKind::argument,
      "cuda: average of {} neighbors, at most {} are read on a device; choose a sparser topology",
      work.values.size(), max_neighbors);
  const UseDevice use(stream.device());
  check(launch_average<T, Stored>({work.next, work.own, work.values.data(), work.weights.data(),
                                   static_cast<int>(work.values.size()),
                                   combine::table_of({work.current, 0, work.count, 0, 0, 0, 0})},
                                  static_cast<cudaStream_t>(stream.handle())),
        fmt::format("averaging {} elements of {} neighbors", work.count, work.values.size()));
}

}  // namespace

void average(const Average<float, float>& work, const Stream& stream) {
  run<float, float>(work, stream);
}
void average(const Average<double, double>& work, const Stream& stream) {
  run<double, double>(work, stream);
}
void average(const Average<float, BFloat16>& work, const Stream& stream) {
  run<float, BFloat16>(work, stream);
}

}  // namespace fast::cuda
