#include "testing/samples.hpp"

#include <fast/core/random.hpp>

namespace fast::testing {

Samples::Samples(const Problem& problem, std::size_t count, std::uint64_t part)
    : shape(problem.sample_shape) {
  for (const std::int64_t side : shape) values_per_sample *= static_cast<std::size_t>(side);
  const auto classes = static_cast<std::size_t>(problem.classes);
  Rng rng(mix_seed(problem.seed, 1));
  std::vector<float> prototypes(classes * values_per_sample);
  for (float& value : prototypes) value = static_cast<float>(rng.normal());
  Rng noise(mix_seed(problem.seed, 2, part));
  for (std::size_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::int32_t>(i % classes));
    const float* prototype = prototypes.data() + i % classes * values_per_sample;
    for (std::size_t v = 0; v < values_per_sample; ++v)
      inputs.push_back(prototype[v] + 0.3F * static_cast<float>(noise.normal()));
  }
}

Batch Samples::batch(std::size_t first, std::size_t count) const {
  return {std::span(inputs).subspan(first * values_per_sample, count * values_per_sample),
          std::span(labels).subspan(first, count), shape};
}

}  // namespace fast::testing
