#include "cuda/averaging/average_launch.hpp"
#include "cuda/device/launch_chunks.cuh"

namespace fast::cuda {
namespace {

template <int Width, class T, class Stored>
cudaError_t average_packs(const AverageLaunch<T, Stored>& work, cudaStream_t stream) {
  return with_average(work, [&](const auto& elements) {
    return launch_chunks<Width>(elements, work.table, stream);
  });
}

}  // namespace

template <class T, class Stored>
cudaError_t launch_average(const AverageLaunch<T, Stored>& work, cudaStream_t stream) {
  if (work.degree > most_averaged) return cudaErrorInvalidValue;
  // Accesses of 16 bytes: to the weights if they are read and stored, else to the slots. A thread
  // that stored 32 bytes of weights by two accesses would leave sectors of 32 bytes half full.
  const bool in_messages = work.table.runs == nullptr && work.table.single.current == nullptr;
  if (in_messages) return average_packs<16 / sizeof(Stored)>(work, stream);
  return average_packs<16 / sizeof(T)>(work, stream);
}

template cudaError_t launch_average(const AverageLaunch<float, float>&, cudaStream_t);
template cudaError_t launch_average(const AverageLaunch<double, double>&, cudaStream_t);
template cudaError_t launch_average(const AverageLaunch<float, BFloat16>&, cudaStream_t);
template cudaError_t launch_average(const AverageLaunch<float, Float16>&, cudaStream_t);

}  // namespace fast::cuda
