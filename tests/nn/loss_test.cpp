#include <cmath>
#include <fast/nn/loss.hpp>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace fast::nn;

TEST_CASE("softmax cross-entropy is -log softmax, its gradient softmax minus one-hot") {
  const std::vector<double> logits{std::log(1.0), std::log(2.0), std::log(5.0),
                                   std::log(3.0), std::log(3.0), std::log(2.0)};
  const std::vector<std::int32_t> labels{2, 1};
  std::vector<double> gradient(6, 99);
  const LossResult loss = softmax_cross_entropy<double>(logits, labels, gradient);
  CHECK(loss.sum == Approx(std::log(8.0 / 5) + std::log(8.0 / 3)));
  CHECK(loss.correct == 1);  // of the equal logits of the second sample the first counts
  const std::vector<double> expected{1.0 / 16, 2.0 / 16, -3.0 / 16, 3.0 / 16, -5.0 / 16, 2.0 / 16};
  for (std::size_t i = 0; i < 6; ++i) CHECK(gradient[i] == Approx(expected[i]));
}

TEST_CASE("extreme logits neither overflow nor lose the loss") {
  const std::vector<float> logits{1e30F, -1e30F, 0, 3e38F, 3e38F, -3e38F};
  const std::vector<std::int32_t> labels{0, 1};
  std::vector<float> gradient(6);
  const LossResult sure = softmax_cross_entropy<float>(logits, labels, gradient);
  CHECK(sure.sum == Approx(std::log(2.0)));
  CHECK(gradient[0] == 0);
  CHECK(gradient[3] == Approx(0.25));
  CHECK(gradient[4] == Approx(-0.25));

  const std::vector<float> wrong{0, 1000};
  const std::vector<std::int32_t> first{0};
  CHECK(softmax_cross_entropy<float>(wrong, first).sum == Approx(1000));
}

TEST_CASE("a logit that is not finite makes the loss NaN") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const std::int32_t label : {0, 1}) {
      const std::vector<float> logits{0, bad};
      const std::vector<std::int32_t> labels{label};
      CHECK(std::isnan(softmax_cross_entropy<float>(logits, labels).sum));
    }
}

namespace {

using fast::Batch;
using fast::nn::Loss;
using fast::nn::LossSpec;

const std::vector<double> some_outputs{0.5, -2, 3, 0.25, -0.75, 1e3};

/// Three samples of two outputs.
Batch batch_of(const std::vector<float>& targets) { return {{}, {}, {}, targets, {2}}; }

/// Losses of Python 3, NumPy: (z - t)**2, and so on, summed and divided by two outputs a sample.
struct Closed {
  LossSpec loss;
  std::vector<float> targets;
  double sum;
};
std::vector<Closed> closed_forms() {
  const std::vector<float> targets{1, -2, 0, 0.75F, 1.25F, 999.5F};
  return {{{Loss::mse}, targets, (0.25 + 0 + 9 + 0.25 + 4 + 0.25) / 2},
          {{Loss::huber, 1}, targets, (0.125 + 0 + 2.5 + 0.125 + 1.5 + 0.125) / 2},
          {{Loss::huber, 4}, targets, (0.25 + 0 + 9 + 0.25 + 4 + 0.25) / 4},
          {{Loss::binary_cross_entropy},
           {1, 0, 1, 0.5F, 0, 1},
           (std::log1p(std::exp(-0.5)) + std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-3.0)) +
            0.125 + std::log1p(std::exp(-0.25)) + std::log1p(std::exp(-0.75)) + 0) /
               2}};
}

}  // namespace

TEST_CASE("losses of numbers are their closed forms, a mean over the outputs of a sample") {
  for (const Closed& form : closed_forms()) {
    INFO(name(form.loss.kind) << ", delta " << form.loss.delta);
    const LossResult found = loss_of<double>(form.loss, some_outputs, batch_of(form.targets));
    CHECK(found.sum == Approx(form.sum));
    CHECK(found.correct == 0);
  }
}

TEST_CASE("gradients of losses are those of the mean loss by central differences") {
  for (const Closed& form : closed_forms()) {
    INFO(name(form.loss.kind) << ", delta " << form.loss.delta);
    const Batch batch = batch_of(form.targets);
    std::vector<double> outputs = some_outputs, gradient(6, 99);
    loss_of<double>(form.loss, outputs, batch, gradient);
    for (std::size_t i = 0; i < 6; ++i) {
      const auto at = [&](double value) {
        std::vector<double> moved = some_outputs;
        moved[i] = value;
        return loss_of<double>(form.loss, moved, batch).sum / 3;
      };
      constexpr double h = 1e-5;
      const double slope = (at(some_outputs[i] + h) - at(some_outputs[i] - h)) / (2 * h);
      CHECK(gradient[i] == Approx(slope).epsilon(1e-6).margin(1e-7));
    }
  }
}

TEST_CASE("cross-entropy of labels of each step is the mean over the steps") {
  const std::vector<double> logits{1, 2, 0, 3, -1, 1, 2, 2};  // 2 samples, 2 steps, 2 classes
  const std::vector<std::int32_t> labels{0, 1, 1, 0};
  const Batch batch{{}, labels, {}, {}, {2}};
  std::vector<double> gradient(8), flat(8);
  const LossResult steps = loss_of<double>({}, logits, batch, gradient);
  const LossResult rows = softmax_cross_entropy<double>(logits, labels, flat);
  CHECK(steps.sum == Approx(rows.sum / 2));
  CHECK(steps.correct == 3);
  CHECK(gradient == flat);
  const auto measures = values_of(fast::nn::measures_of<double>({}, logits, batch));
  REQUIRE(measures.size() == 2);
  CHECK(measures[0] == std::pair<std::string, double>("accuracy", 0.75));
  CHECK(measures[1].first == "perplexity");
  CHECK(measures[1].second == Approx(std::exp(rows.sum / 4)));
}

TEST_CASE("label smoothing and weights of classes are their definition, one logarithm a class") {
  const std::vector<double> logits{1, 2, -1, 0.5, 0, 3};
  const std::vector<std::int32_t> labels{2, 0};
  const Batch batch{{}, labels, {}};
  const std::vector<LossSpec> specs{{Loss::cross_entropy, 1, 0.3},
                                    {Loss::cross_entropy, 1, 0, {0.5, 2, 4}},
                                    {Loss::cross_entropy, 1, 0.2, {0.5, 2, 0}}};
  for (const LossSpec& spec : specs) {
    CAPTURE(spec.smoothing);
    const auto defined = [&](const std::vector<double>& z) {
      double sum = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        const double* row = z.data() + 3 * i;
        const double total = std::exp(row[0]) + std::exp(row[1]) + std::exp(row[2]);
        for (std::size_t c = 0; c < 3; ++c) {
          const double weight = spec.class_weights.empty() ? 1 : spec.class_weights[c];
          const double hard = static_cast<std::size_t>(labels[i]) == c ? 1 - spec.smoothing : 0;
          sum -= weight * (hard + spec.smoothing / 3) * (row[c] - std::log(total));
        }
      }
      return sum;
    };
    std::vector<double> gradient(6, 99);
    CHECK(loss_of<double>(spec, logits, batch, gradient).sum == Approx(defined(logits)));
    CHECK(loss_of<double>(spec, logits, batch, gradient).correct == 0);
    for (std::size_t i = 0; i < 6; ++i) {
      std::vector<double> more = logits, less = logits;
      more[i] += 1e-5;
      less[i] -= 1e-5;
      CHECK(gradient[i] ==
            Approx((defined(more) - defined(less)) / 2e-5 / 2).epsilon(1e-6).margin(1e-8));
    }
  }
}

TEST_CASE("a mixed sample has the mean of its two labels' losses, and of their gradients") {
  const std::vector<double> logits{1, 2, -1, 0.5, 0, 3};
  const std::vector<std::int32_t> first{2, 0}, second{2, 1};
  const std::vector<LossSpec> specs{
      {}, {Loss::cross_entropy, 1, 0.3}, {Loss::cross_entropy, 1, 0.2, {0.5, 2, 0}}};
  for (const LossSpec& spec : specs) {
    std::vector<double> of_first(6), of_second(6), mixed(6);
    const double a = loss_of<double>(spec, logits, Batch{{}, first, {}}, of_first).sum;
    const double b = loss_of<double>(spec, logits, Batch{{}, second, {}}, of_second).sum;
    const Batch batch{{}, first, {}, {}, {}, second, 0.75};
    const LossResult found = loss_of<double>(spec, logits, batch, mixed);
    CHECK(found.sum == Approx(0.75 * a + 0.25 * b));
    CHECK(found.correct == 0);
    for (std::size_t i = 0; i < 6; ++i)
      CHECK(mixed[i] == Approx(0.75 * of_first[i] + 0.25 * of_second[i]).margin(1e-12));
  }
}

TEST_CASE("a NaN output makes every loss NaN") {
  std::vector<double> outputs = some_outputs;
  outputs[3] = std::numeric_limits<double>::quiet_NaN();
  for (const Closed& form : closed_forms())
    CHECK(std::isnan(loss_of<double>(form.loss, outputs, batch_of(form.targets)).sum));
}

TEST_CASE("regressions are measured by mae and rmse") {
  const std::vector<float> targets{0, 0, 0, 0, 0, 997};
  const auto found =
      values_of(fast::nn::measures_of<double>({Loss::mse}, some_outputs, batch_of(targets)));
  REQUIRE(found.size() == 2);
  CHECK(found[0].first == "mae");
  CHECK(found[0].second == Approx((0.5 + 2 + 3 + 0.25 + 0.75 + 3) / 6));
  CHECK(found[1].first == "rmse");
  CHECK(found[1].second == Approx(std::sqrt((0.25 + 4 + 9 + 0.0625 + 0.5625 + 9) / 6)));
}

TEST_CASE("binary tasks are measured by accuracy and auc, with labels or targets") {
  const std::vector<double> logits{2, -1, 0.5, -3, 1};
  const std::vector<std::int32_t> labels{1, 1, 0, 0, 1};
  const std::vector<float> targets{1, 1, 0, 0, 1};
  const LossSpec loss{Loss::binary_cross_entropy};
  for (const Batch& batch : {Batch{{}, labels, {}}, Batch{{}, {}, {}, targets}}) {
    const auto found = values_of(fast::nn::measures_of<double>(loss, logits, batch));
    REQUIRE(found.size() == 2);
    CHECK(found[0] == std::pair<std::string, double>("accuracy", 0.6));
    CHECK(found[1].first == "auc");
    CHECK(found[1].second == Approx(5.0 / 6));  // of six pairs, (-1, 0.5) is in the wrong order
    CHECK(loss_of<double>(loss, logits, batch).sum ==
          Approx(std::log1p(std::exp(-2.0)) + std::log1p(std::exp(1.0)) +
                 std::log1p(std::exp(0.5)) + std::log1p(std::exp(-3.0)) +
                 std::log1p(std::exp(-1.0))));
  }
}

TEST_CASE("top5 is known of more than ten classes, and takes the first of equal logits") {
  std::vector<double> logits(22, 0);
  for (std::size_t c = 0; c < 11; ++c) logits[c] = static_cast<double>(c);
  const auto top5 = [&](std::int32_t first, std::int32_t second) {
    const std::vector<std::int32_t> labels{first, second};
    return values_of(fast::nn::measures_of<double>({}, logits, {{}, labels, {}})).at(1).second;
  };
  CHECK(top5(6, 4) == 1);
  CHECK(top5(5, 4) == 0.5);
  CHECK(top5(5, 5) == 0);
  const std::vector<std::int32_t> labels{1, 1};
  const std::vector<double> ten(20, 0);
  CHECK(fast::nn::measures_of<double>({}, ten, {{}, labels, {}}).empty());
}

TEST_CASE("losses are found by their names") {
  for (const Loss loss : all_losses) CHECK(loss_by_name(name(loss)) == loss);
  CHECK_FALSE(loss_by_name("hinge"));
  CHECK_FALSE(loss_by_name(""));
}
