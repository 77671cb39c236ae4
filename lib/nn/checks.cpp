#include "nn/checks.hpp"

#include <fast/core/error.hpp>

namespace fast::nn {

bool processor_fits() noexcept {
#ifdef FAST_NN_X86_64_V3
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
#else
  return true;
#endif
}

void require_processor(bool fits) {
  require(fits, ErrorKind::resource,
          "fast::nn: this processor lacks AVX2, FMA or BMI2, for which the library was built "
          "(x86-64-v3); rebuild it with -DFAST_PORTABLE=ON");
}

void require_logits(const ModelSpec& spec) {
  if (spec.layers.empty()) return;
  const LayerSpec& last = spec.layers.back();
  const bool twice =
      (spec.loss.kind == Loss::cross_entropy && std::holds_alternative<Softmax>(last)) ||
      (spec.loss.kind == Loss::binary_cross_entropy && std::holds_alternative<Sigmoid>(last));
  require(!twice, ErrorKind::argument,
          "model {}: its last layer is {}, which the loss {} applies itself; remove this layer",
          spec.name, describe(last), name(spec.loss.kind));
}

}  // namespace fast::nn
