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
