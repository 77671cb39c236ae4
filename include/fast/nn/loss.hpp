// The loss of classifiers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fast::nn {

struct LossResult {
  double sum = 0;           ///< of -log softmax(logits)[label] over the samples
  std::size_t correct = 0;  ///< samples whose largest logit (the first of equals) is their label's
};

/// Softmax cross-entropy of `logits` [labels.size() x classes], row-major, without overflow for any
/// finite logits. A non-empty `gradient` (as large as logits) gets that of the *mean* loss. Labels
/// must be in [0, classes). T is float or double; sums are kept in double.
template <class T>
LossResult softmax_cross_entropy(std::span<const T> logits, std::span<const std::int32_t> labels,
                                 std::span<T> gradient = {});

}  // namespace fast::nn
