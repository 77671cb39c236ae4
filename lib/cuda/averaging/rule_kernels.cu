#include "cuda/averaging/rule_elements.hpp"
#include "cuda/averaging/rule_launch.hpp"
#include "cuda/device/launch_chunks.cuh"

namespace fast::cuda {

cudaError_t launch_rule(const combine::ElementWork& work, cudaStream_t stream) {
  cudaError_t code = cudaSuccess;
  const bool known = launch_rule_elements(work, [&]<class Elements>(const Elements& elements) {
    code = launch_chunks<width_of<Elements>()>(elements, work.table, stream);
  });
  return known ? code : cudaErrorInvalidValue;
}

}  // namespace fast::cuda
