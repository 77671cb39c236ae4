// What a model is trained to make small.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/measure.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fast::nn {

/// cross_entropy: -log softmax(outputs)[label], for one class label a sample or one a step.
/// mse: (output - target)².
/// huber: (output - target)² / 2 up to a difference of delta, and delta·(|output - target| -
/// delta/2) beyond (Huber 1964).
/// binary_cross_entropy: max(z, 0) - z·t + log(1 + exp(-|z|)) for the logit z and the target t in
/// [0, 1].
enum class Loss : std::uint8_t { cross_entropy, mse, huber, binary_cross_entropy };

/// "cross_entropy", "mse", "huber" or "binary_cross_entropy".
std::string_view name(Loss loss) noexcept;
inline constexpr Loss all_losses[] = {Loss::cross_entropy, Loss::mse, Loss::huber,
                                      Loss::binary_cross_entropy};
/// Nothing: there is none of this name.
std::optional<Loss> loss_by_name(std::string_view name) noexcept;

/// What training makes small. Evaluations leave smoothing and weights of classes out, so that runs
/// can be compared.
struct LossSpec {
  Loss kind = Loss::cross_entropy;
  double delta = 1;  ///< of huber; positive
  /// Label smoothing of cross_entropy, in [0, 1): this share of the target is spread evenly over
  /// all classes (Szegedy et al. 2016).
  double smoothing = 0;
  /// Of cross_entropy, one a class: the loss of a class is multiplied by it, as PyTorch does. The
  /// mean is over samples, while PyTorch divides by the sum of their weights. Empty: all 1.
  std::vector<double> class_weights = {};

  bool is_plain() const { return smoothing == 0 && class_weights.empty(); }
};

struct LossResult {
  double sum = 0;           ///< over the samples, of the mean over the outputs of a sample
  std::size_t correct = 0;  ///< labels whose logit is the largest
  std::vector<Measure> measures = {};

  void add(const LossResult& other);
};

/// Softmax cross-entropy of `logits` [labels.size() x classes], row-major. Finite logits do not
/// overflow. If `gradient` is not empty, it has the size of the logits and receives the gradient of
/// the *mean* loss. Labels must be in [0, classes). T is float or double; sums are computed in
/// double.
template <class T>
LossResult softmax_cross_entropy(std::span<const T> logits, std::span<const std::int32_t> labels,
                                 std::span<T> gradient = {});

/// Returns the loss of a batch from its outputs [count x outputs of a sample], row-major, without
/// measures. mse, huber and binary_cross_entropy compare each output with a target; the last one
/// also takes a label, 0 or 1. The loss of a sample is the mean of these values, as in PyTorch.
/// Cross-entropy takes as many rows of logits as there are labels. The loss of a sample is then the
/// mean over its labels. A label y of C classes has the loss -Σ q_c log softmax_c. For smoothing s
/// and weights w, q_c is s·w_c/C, and (1-s)·w_y more for c = y. A mixed sample has the mean of its
/// two labels' losses, by their shares. `gradient` is as above. The batch
/// must fit; Network checks that.
template <class T>
LossResult loss_of(const LossSpec& spec, std::span<const T> outputs, const Batch& batch,
                   std::span<T> gradient = {});

/// Up to so many classes, one label a sample is measured by the accuracy alone.
inline constexpr std::int64_t few_classes = 10;

/// Returns the measures of the task, see Evaluation::measures. For cross_entropy with one label a
/// sample these are none (the accuracy is enough), or accuracy and top5 above few_classes classes.
/// With a label a step, they are accuracy and perplexity. mse and huber have mae and rmse.
/// binary_cross_entropy has accuracy and auc.
template <class T>
std::vector<Measure> measures_of(const LossSpec& spec, std::span<const T> outputs,
                                 const Batch& batch);

}  // namespace fast::nn
