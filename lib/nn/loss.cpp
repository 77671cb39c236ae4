#include <algorithm>
#include <cmath>
#include <fast/nn/loss.hpp>

namespace fast::nn {

template <class T>
LossResult softmax_cross_entropy(std::span<const T> logits, std::span<const std::int32_t> labels,
                                 std::span<T> gradient) {
  LossResult result;
  if (labels.empty()) return result;
  const std::size_t classes = logits.size() / labels.size();
  const T scale = T{1} / static_cast<T>(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const T> row = logits.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto largest = std::max_element(row.begin(), row.end());
    T* grad = gradient.empty() ? nullptr : gradient.data() + i * classes;
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const T power = std::exp(row[c] - *largest);
      total += static_cast<double>(power);
      if (grad != nullptr) grad[c] = power;
    }
    result.sum += std::log(total) - static_cast<double>(row[label] - *largest);
    result.correct += static_cast<std::size_t>(largest - row.begin()) == label;
    if (grad == nullptr) continue;
    const T share = scale / static_cast<T>(total);
    for (std::size_t c = 0; c < classes; ++c) grad[c] *= share;
    grad[label] -= scale;
  }
  return result;
}

template LossResult softmax_cross_entropy(std::span<const float>, std::span<const std::int32_t>,
                                          std::span<float>);
template LossResult softmax_cross_entropy(std::span<const double>, std::span<const std::int32_t>,
                                          std::span<double>);

}  // namespace fast::nn
