#include "data/target_scale.hpp"

#include <cmath>
#include <fast/core/error.hpp>
#include <utility>

#include "core/message.hpp"

namespace fast::data {

void scale_targets(Splits& splits, const std::string& from) {
  const Dataset& train = splits.train;
  require(train.classes() == 0, ErrorKind::argument,
          "data: {}: it has {} classes; only float targets are scaled, leave --scale-targets out",
          printable(from), train.classes());
  const std::span<const float> targets = train.targets();
  const std::size_t each = train.target_size();
  const auto samples = static_cast<double>(train.size());
  Normalization& to = splits.normalization;
  for (std::size_t k = 0; k < each; ++k) {
    double sum = 0, squares = 0;
    for (std::size_t i = k; i < targets.size(); i += each) sum += double{targets[i]};
    const double mean = samples > 0 ? sum / samples : 0;
    for (std::size_t i = k; i < targets.size(); i += each)
      squares += (double{targets[i]} - mean) * (double{targets[i]} - mean);
    const double stddev = samples > 0 ? std::sqrt(squares / samples) : 0;
    to.target_mean.push_back(static_cast<float>(mean));
    to.target_stddev.push_back(stddev > 0 ? static_cast<float>(stddev) : 1.0F);
    require(
        std::isfinite(to.target_mean.back()) && std::isnormal(to.target_stddev.back()),
        ErrorKind::data,
        "data: {}: targets have the mean {} and the standard deviation {}; 32-bit floats cannot "
        "scale them, divide the targets",
        printable(from), mean, stddev);
  }
  splits.train = splits.train.with_scaled_targets(to);
  if (splits.test.size() > 0) splits.test = splits.test.with_scaled_targets(to);
}

void to_units_of_data(const Normalization& normalization, std::span<float> outputs) {
  const std::vector<float>&mean = normalization.target_mean, &stddev = normalization.target_stddev;
  for (std::size_t i = 0; i < outputs.size() && !mean.empty(); ++i)
    outputs[i] = outputs[i] * stddev[i % mean.size()] + mean[i % mean.size()];
}

std::vector<float> scaled(const Normalization& normalization, std::span<const float> numbers) {
  const std::vector<float>&mean = normalization.target_mean, &stddev = normalization.target_stddev;
  std::vector<float> values(numbers.begin(), numbers.end());
  for (std::size_t i = 0; i < values.size() && !mean.empty(); ++i)
    values[i] = (values[i] - mean[i % mean.size()]) / stddev[i % mean.size()];
  return values;
}

void check_scale(const Normalization& normalization, std::int64_t outputs,
                 const std::string& from) {
  const std::size_t scaled = normalization.target_mean.size();
  require(scaled == 0 || std::cmp_equal(scaled, outputs), ErrorKind::data,
          "{}: its metadata scales {} targets, the model has {} outputs; save the model again",
          printable(from), scaled, outputs);
}

}  // namespace fast::data
