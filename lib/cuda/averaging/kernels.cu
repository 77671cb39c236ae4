#include <algorithm>

#include "cuda/averaging/average_elements.hpp"
#include "cuda/averaging/average_launch.hpp"
#include "cuda/device/launch_packs.cuh"

namespace fast::cuda {
namespace {

constexpr int any_degree_capacity = 128;  // max_neighbors; kernels' arguments hold 4 KiB

template <int Degree, int Capacity, class T, class Stored>
AverageElements<T, Stored, Degree, Capacity> elements_of(const AverageLaunch<T, Stored>& work) {
  AverageElements<T, Stored, Degree, Capacity> elements{work.current, work.next, work.own,
                                                        {},           {},        work.degree};
  std::copy_n(work.values, work.degree, elements.values);
  std::copy_n(work.factors, work.degree, elements.factors);
  return elements;
}

template <int Width, class T, class Stored>
cudaError_t average_packs(const AverageLaunch<T, Stored>& work, cudaStream_t stream) {
  switch (work.degree) {
    case 1:
      return launch_packs<Width>(elements_of<1, 1>(work), work.count, stream);
    case 2:
      return launch_packs<Width>(elements_of<2, 2>(work), work.count, stream);
    case 4:
      return launch_packs<Width>(elements_of<4, 4>(work), work.count, stream);
    default:
      return launch_packs<Width>(elements_of<0, any_degree_capacity>(work), work.count, stream);
  }
}

}  // namespace

template <class T, class Stored>
cudaError_t launch_average(const AverageLaunch<T, Stored>& work, cudaStream_t stream) {
  if (work.degree > any_degree_capacity) return cudaErrorInvalidValue;
  bool aligned = all_aligned({work.current, work.next, work.own});
  for (int j = 0; j < work.degree; ++j) aligned = aligned && all_aligned({work.values[j]});
  if (!aligned)
    return launch_packs<1>(elements_of<0, any_degree_capacity>(work), work.count, stream);
  // Accesses of 16 bytes: to the weights if they are read and stored, else to the slots. A thread
  // that stored 32 bytes of weights by two accesses would leave sectors of 32 bytes half full.
  if (work.current != nullptr) return average_packs<16 / sizeof(T)>(work, stream);
  return average_packs<16 / sizeof(Stored)>(work, stream);
}

template cudaError_t launch_average(const AverageLaunch<float, float>&, cudaStream_t);
template cudaError_t launch_average(const AverageLaunch<double, double>&, cudaStream_t);
template cudaError_t launch_average(const AverageLaunch<float, BFloat16>&, cudaStream_t);

}  // namespace fast::cuda
