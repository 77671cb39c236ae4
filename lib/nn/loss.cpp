#include <algorithm>
#include <cmath>
#include <fast/nn/loss.hpp>

namespace fast::nn {

namespace {

/// Of one row. Where samples are mixed, the first label has a share, and the second one the rest.
struct Answer {
  std::size_t first, second;
  double share = 1;
};

/// Of one row, for smoothing, weights of classes and mixed samples.
class ShapedTarget {
 public:
  ShapedTarget(const LossSpec& spec, std::size_t classes)
      : spec_(spec), each_(spec.smoothing / static_cast<double>(classes)) {
    for (std::size_t c = 0; c < classes; ++c) total_ += weight(c);
  }
  double of(std::size_t c, const Answer& answer) const {
    const double part =
        (c == answer.first ? answer.share : 0) + (c == answer.second ? 1 - answer.share : 0);
    return each_ * weight(c) + (part > 0 ? (1 - spec_.smoothing) * part * weight(c) : 0);
  }
  /// Over all classes.
  double sum(const Answer& answer) const {
    const double mean =
        answer.share * weight(answer.first) + (1 - answer.share) * weight(answer.second);
    return each_ * total_ + (1 - spec_.smoothing) * mean;
  }

 private:
  double weight(std::size_t c) const {
    return spec_.class_weights.empty() ? 1 : spec_.class_weights[c];
  }
  const LossSpec& spec_;
  double each_, total_ = 0;
};

/// Returns the loss of a row. `grad` holds exp(logit - largest), if it is not null, and becomes the
/// gradient times `scale`.
template <class T>
double shaped_row(const ShapedTarget& target, std::span<const T> row, const Answer& answer,
                  T largest, double total, T* grad, T scale) {
  const double log_total = std::log(total), sum = target.sum(answer);
  double loss = 0;
  for (std::size_t c = 0; c < row.size(); ++c) {
    const double q = target.of(c, answer);
    if (q > 0) loss += q * (log_total - static_cast<double>(row[c] - largest));
    if (grad != nullptr)
      grad[c] = static_cast<T>(static_cast<double>(scale) *
                               (static_cast<double>(grad[c]) / total * sum - q));
  }
  return loss;
}

template <class T>
LossResult cross_entropy(const LossSpec& spec, std::span<const T> logits, const Batch& batch,
                         std::span<T> gradient) {
  LossResult result;
  const std::span<const std::int32_t> labels = batch.labels, mixed = batch.mixed_labels;
  if (labels.empty()) return result;
  const std::size_t classes = logits.size() / labels.size();
  const T scale = T{1} / static_cast<T>(labels.size());
  const ShapedTarget target(spec, classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const T> row = logits.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto largest = std::ranges::max_element(row);
    T* grad = gradient.empty() ? nullptr : gradient.data() + i * classes;
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const T power = std::exp(row[c] - *largest);
      total += static_cast<double>(power);
      if (grad != nullptr) grad[c] = power;
    }
    result.correct += static_cast<std::size_t>(largest - row.begin()) == label;
    if (!spec.is_plain() || !mixed.empty()) {
      const auto second = mixed.empty() ? label : static_cast<std::size_t>(mixed[i]);
      const Answer answer{label, second, batch.share};
      result.sum += shaped_row(target, row, answer, *largest, total, grad, scale);
      continue;
    }
    result.sum += std::log(total) - static_cast<double>(row[label] - *largest);
    if (grad == nullptr) continue;
    const T share = scale / static_cast<T>(total);
    for (std::size_t c = 0; c < classes; ++c) grad[c] *= share;
    grad[label] -= scale;
  }
  return result;
}

}  // namespace

template <class T>
LossResult softmax_cross_entropy(std::span<const T> logits, std::span<const std::int32_t> labels,
                                 std::span<T> gradient) {
  return cross_entropy(LossSpec(), logits, Batch{{}, labels, {}}, gradient);
}

std::string_view name(Loss loss) noexcept {
  constexpr std::string_view names[] = {"cross_entropy", "mse", "huber", "binary_cross_entropy"};
  return names[static_cast<std::size_t>(loss)];
}

std::optional<Loss> loss_by_name(std::string_view wanted) noexcept {
  for (const Loss loss : all_losses) {
    if (name(loss) == wanted) return loss;
  }
  return std::nullopt;
}

void LossResult::add(const LossResult& other) {
  sum += other.sum;
  correct += other.correct;
  fast::add(measures, other.measures);
}

namespace {

constexpr std::size_t top = 5;

/// A float target, or a label as a number.
double target_at(const Batch& batch, std::size_t i) {
  return batch.targets.empty() ? static_cast<double>(batch.labels[i])
                               : static_cast<double>(batch.targets[i]);
}

/// The loss of one output and its derivative.
struct Point {
  double loss, slope;
};

Point squared(double output, double target) {
  const double difference = output - target;
  return {difference * difference, 2 * difference};
}

Point huber(double output, double target, double delta) {
  const double difference = output - target, size = std::fabs(difference);
  if (!(size > delta)) return {difference * difference / 2, difference};
  return {delta * (size - delta / 2), std::copysign(delta, difference)};
}

Point binary(double logit, double target) {
  const double small = std::exp(-std::fabs(logit));
  const double share = (logit < 0 ? small : 1) / (1 + small);  // σ(logit)
  return {std::fmax(logit, 0) - logit * target + std::log1p(small), share - target};
}

/// Of all outputs, each with its target.
template <class T, class Pointwise>
LossResult pointwise_loss(std::span<const T> outputs, const Batch& batch, std::span<T> gradient,
                          const Pointwise& loss) {
  LossResult result;
  const double each = static_cast<double>(outputs.size() / batch.count());
  const double scale = 1 / static_cast<double>(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Point point = loss(static_cast<double>(outputs[i]), target_at(batch, i));
    result.sum += point.loss;
    if (!gradient.empty()) gradient[i] = static_cast<T>(scale * point.slope);
  }
  result.sum /= each;
  return result;
}

template <class T>
LossResult label_loss(const LossSpec& spec, std::span<const T> outputs, const Batch& batch,
                      std::span<T> gradient) {
  LossResult result = cross_entropy(spec, outputs, batch, gradient);
  if (!batch.target_shape.empty()) result.sum /= static_cast<double>(batch.target_size());
  return result;
}

/// Labels whose logit is among the `top` largest; of equal logits, the first is the larger one.
template <class T>
std::size_t in_top(std::span<const T> logits, std::span<const std::int32_t> labels) {
  const std::size_t classes = logits.size() / labels.size();
  std::size_t hits = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const T> row = logits.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    std::size_t before = 0;
    for (std::size_t c = 0; c < classes; ++c)
      before += row[c] > row[label] || (row[c] == row[label] && c < label) ? 1 : 0;
    hits += before < top && !std::isnan(row[label]) ? 1 : 0;
  }
  return hits;
}

using Form = Measure::Form;

template <class T>
std::vector<Measure> label_measures(std::span<const T> logits, const Batch& batch) {
  const auto count = static_cast<double>(batch.labels.size());
  const bool per_step = !batch.target_shape.empty();
  const std::size_t classes = logits.size() / batch.labels.size();
  if (!per_step && static_cast<std::int64_t>(classes) <= few_classes) return {};
  const LossResult found = softmax_cross_entropy<T>(logits, batch.labels);
  std::vector<Measure> measures{
      {"accuracy", Form::share, {static_cast<double>(found.correct), count}}};
  if (per_step) {
    measures.push_back({"perplexity", Form::exp_of_mean, {found.sum, count}});
  } else {
    measures.push_back(
        {"top5", Form::share, {static_cast<double>(in_top(logits, batch.labels)), count}});
  }
  return measures;
}

template <class T>
std::vector<Measure> number_measures(std::span<const T> outputs, const Batch& batch) {
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double difference = static_cast<double>(outputs[i]) - target_at(batch, i);
    sum += std::fabs(difference);
    squares += difference * difference;
  }
  const auto count = static_cast<double>(outputs.size());
  return {{"mae", Form::mean, {sum, count}}, {"rmse", Form::root_of_mean, {squares, count}}};
}

/// Class 1 is where the target is above 1/2.
template <class T>
std::vector<Measure> binary_measures(std::span<const T> logits, const Batch& batch) {
  Measure area = empty_area("auc");
  double hits = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto logit = static_cast<double>(logits[i]);
    const bool is_one = target_at(batch, i) > 0.5;
    hits += !std::isnan(logit) && (logit > 0) == is_one ? 1 : 0;
    // A NaN makes the area NaN.
    area.sums[(std::isnan(logit) ? 0 : score_bin(logit)) + (is_one ? score_bins : 0)] +=
        std::isnan(logit) ? logit : 1;
  }
  return {{"accuracy", Form::share, {hits, static_cast<double>(logits.size())}}, std::move(area)};
}

}  // namespace

template <class T>
LossResult loss_of(const LossSpec& spec, std::span<const T> outputs, const Batch& batch,
                   std::span<T> gradient) {
  switch (spec.kind) {
    case Loss::mse:
      return pointwise_loss(outputs, batch, gradient, squared);
    case Loss::huber:
      return pointwise_loss(outputs, batch, gradient, [&](double output, double target) {
        return huber(output, target, spec.delta);
      });
    case Loss::binary_cross_entropy:
      return pointwise_loss(outputs, batch, gradient, binary);
    default:
      return label_loss(spec, outputs, batch, gradient);
  }
}

template <class T>
std::vector<Measure> measures_of(const LossSpec& spec, std::span<const T> outputs,
                                 const Batch& batch) {
  if (spec.kind == Loss::cross_entropy) return label_measures(outputs, batch);
  if (spec.kind == Loss::binary_cross_entropy) return binary_measures(outputs, batch);
  return number_measures(outputs, batch);
}

template LossResult softmax_cross_entropy(std::span<const float>, std::span<const std::int32_t>,
                                          std::span<float>);
template LossResult softmax_cross_entropy(std::span<const double>, std::span<const std::int32_t>,
                                          std::span<double>);
template LossResult loss_of(const LossSpec&, std::span<const float>, const Batch&,
                            std::span<float>);
template LossResult loss_of(const LossSpec&, std::span<const double>, const Batch&,
                            std::span<double>);
template std::vector<Measure> measures_of(const LossSpec&, std::span<const float>, const Batch&);
template std::vector<Measure> measures_of(const LossSpec&, std::span<const double>, const Batch&);

}  // namespace fast::nn
