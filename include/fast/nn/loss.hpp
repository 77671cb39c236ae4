// The loss of a classifier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fast::nn {

struct LossResult {
  double sum = 0;           ///< over the samples, of -log softmax(logits)[label]
  std::size_t correct = 0;  ///< samples whose largest logit is that of the label
};

/// Softmax cross-entropy of `logits` [labels.size() x classes], row-major. Finite logits do not
/// overflow. If `gradient` is not empty, it has the size of the logits and receives the gradient of
/// the *mean* loss. Labels must be in [0, classes). T is float or double; sums are computed in
/// double.
template <class T>
LossResult softmax_cross_entropy(std::span<const T> logits, std::span<const std::int32_t> labels,
                                 std::span<T> gradient = {});

}  // namespace fast::nn
