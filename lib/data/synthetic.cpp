#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/data/synthetic.hpp>

namespace fast::data {

Dataset synthetic_classification(std::size_t samples, std::vector<std::int64_t> sample_shape,
                                 int classes, std::uint64_t seed, double noise) {
  require(classes > 0, ErrorKind::argument,
          "synthetic_classification: {} classes; at least 1 is needed", classes);
  const std::size_t size = TensorView{.name = "sample", .shape = sample_shape}.element_count();
  Rng rng(seed);
  std::vector<double> centers(static_cast<std::size_t>(classes) * size);
  for (double& value : centers) value = rng.normal();
  std::vector<float> values;
  values.reserve(samples * size);
  std::vector<std::int32_t> labels(samples);
  for (std::size_t s = 0; s < samples; ++s) {
    const std::size_t label = s % static_cast<std::size_t>(classes);
    labels[s] = static_cast<std::int32_t>(label);
    for (std::size_t i = 0; i < size; ++i) {
      values.push_back(static_cast<float>(centers[label * size + i] + noise * rng.normal()));
    }
  }
  return {"synthetic", std::move(sample_shape), std::move(values), std::move(labels), classes};
}

}  // namespace fast::data
