// Losses and measures of the caller's own, with modules of LibTorch.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/dataset.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/torch/backend.hpp>
#include <fast/train/trainer.hpp>

#include "support/catch.hpp"

namespace {

using fast::Batch;
using Form = fast::Measure::Form;
using Tensor = at::Tensor;

/// A linear layer, all weights 0.
torch::nn::Linear zeros(std::int64_t inputs, std::int64_t outputs,
                        at::ScalarType type = at::kDouble) {
  torch::nn::Linear line(inputs, outputs);
  const at::NoGradGuard no_gradients;
  line->to(type);
  for (Tensor& parameter : line->parameters()) parameter.zero_();
  return line;
}

std::unique_ptr<fast::Backend> trained_for(torch::nn::Linear line,
                                           fast::torch::ModuleOptions options, double rate = 0.1) {
  return fast::torch::make_backend(
      line, std::make_shared<torch::optim::SGD>(line->parameters(), torch::optim::SGDOptions(rate)),
      options);
}

Tensor squares(const Tensor& outputs, const Tensor& targets) {
  return (outputs.squeeze(1) - targets).square().mean();
}

/// The pinball loss of the quantile 3/4.
Tensor pinball(const Tensor& outputs, const Tensor& targets) {
  const Tensor above = targets - outputs.squeeze(1);
  return at::max(0.75 * above, -0.25 * above).mean();
}

}  // namespace

TEST_CASE("a squared distance of one's own in LibTorch finds the least squares line") {
  // Sums over x = 0, 1, 2, 3 and t = 1, 3, 2, 5 give the slope 11/10 and the offset 11/10.
  const std::vector<float> inputs{0, 1, 2, 3}, targets{1, 3, 2, 5};
  for (const int parts : {1, 3}) {
    const auto line = zeros(1, 1);
    fast::torch::ModuleOptions options;
    options.own_loss = squares;
    options.accumulate = parts;
    const auto backend = trained_for(line, options);
    for (int step = 0; step < 1000; ++step) backend->train({inputs, {}, {1}, targets, {}});
    CHECK(line->weight.item<double>() == Approx(1.1).epsilon(1e-6));
    CHECK(line->bias.item<double>() == Approx(1.1).epsilon(1e-6));
  }
}

TEST_CASE("a pinball loss of one's own finds the quantile, and measures are those of a hand") {
  // Of 1 to 8, the pinball loss of 3/4 is least between 6 and 7, where it is 6/8.
  const std::vector<float> inputs(8), targets{8, 1, 7, 2, 6, 3, 5, 4};
  const Batch batch{inputs, {}, {1}, targets, {}};
  const auto line = zeros(1, 1);
  fast::torch::ModuleOptions options;
  options.own_loss = pinball;
  options.own_measures = [](const Tensor& outputs, const Tensor& given) {
    const double below = given.le(outputs.squeeze(1)).sum().item<double>();
    return std::vector<fast::Measure>{
        {"covered", Form::share, {below, static_cast<double>(given.numel())}}};
  };
  const auto backend = trained_for(line, options, 0.05);
  fast::Evaluation found = backend->evaluate(batch);
  CHECK(found.loss_sum == Approx(0.75 * 36));
  CHECK(found.measures.at(0).value() == 0);
  for (int step = 0; step < 2000; ++step) backend->train(batch);
  found = backend->evaluate(batch);
  CHECK(found.loss_sum == Approx(6).epsilon(0.01));
  CHECK(line->bias.item<double>() == Approx(6.5).margin(0.6));
  CHECK(found.measures.at(0).name == "covered");
  CHECK(found.measures.at(0).value() == Approx(0.75).margin(0.126));
  CHECK_FALSE(backend->correct_in_step());
}

TEST_CASE("an own cross-entropy of labels for each step is that of the library") {
  const std::vector<float> inputs{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::vector<std::int32_t> labels{0, 2, 1, 1, 0, 2};
  const Batch batch{inputs, labels, {3, 2}, {}, {3}};  // two samples of three steps
  fast::torch::ModuleOptions options;
  options.own_loss = [](const Tensor& outputs, const Tensor& given) {
    return torch::nn::functional::cross_entropy(outputs.flatten(0, 1), given.flatten());
  };
  const auto own = trained_for(zeros(2, 3), options, 0.01),
             known = trained_for(zeros(2, 3), {}, 0.01);
  CHECK(own->evaluate(batch).loss_sum == Approx(2 * std::log(3)));
  for (int step = 0; step < 20; ++step) {
    REQUIRE(own->train(batch) == Approx(known->train(batch)).epsilon(1e-12));
  }
  const fast::Evaluation found = own->evaluate(batch);
  CHECK(found.measures.at(0).name == "mean_loss");
  CHECK(found.measures.at(0).value() == Approx(found.loss_sum / 2));
}

TEST_CASE("an own loss of one class label a sample is measured by the accuracy") {
  const std::vector<float> inputs{1, -1, 2, -2};
  const std::vector<std::int32_t> labels{1, 0, 1, 1};
  const Batch batch{inputs, labels, {1}};
  fast::torch::ModuleOptions options;
  options.own_loss = [](const Tensor& outputs, const Tensor& given) {
    return at::multi_margin_loss(outputs, given);
  };
  const auto line = zeros(1, 2);
  {
    const at::NoGradGuard no_gradients;
    line->weight[1] = 1.0;  // outputs (0, x): right but for the last
  }
  const auto backend = trained_for(line, options);
  const fast::Evaluation found = backend->evaluate(batch);
  CHECK(found.correct == 3);
  CHECK(found.measures.empty());
  CHECK(found.loss_sum == Approx((0 + 0 + 0 + 3) / 2.0));  // margins over two classes
  backend->train(batch);
  CHECK(backend->correct_in_step() == 3U);
}

TEST_CASE("one output a sample has no accuracy: an own loss of it is measured by its mean") {
  const std::vector<float> inputs{1, -1, 2, -2};
  const std::vector<std::int32_t> labels{1, 0, 1, 0};
  fast::torch::ModuleOptions options;
  options.own_loss = [](const Tensor& outputs, const Tensor& given) {
    return at::binary_cross_entropy_with_logits(outputs.squeeze(1), given.to(outputs.dtype()));
  };
  const auto backend = trained_for(zeros(1, 1), options);
  const fast::Evaluation found = backend->evaluate({inputs, labels, {1}});
  CHECK(found.correct == 0);
  REQUIRE(found.measures.size() == 1);
  CHECK(found.measures[0].name == "mean_loss");
  CHECK(found.measures[0].value() == Approx(std::log(2)));
  backend->train({inputs, labels, {1}});
  CHECK_FALSE(backend->correct_in_step());
}

TEST_CASE("errors of LibTorch in the module and in the backward pass are one line") {
  const std::vector<float> inputs{0, 1, 2, 3}, targets{1, 3};
  const auto has_one_line = [](const std::string& text) { return text.find('\n') == text.npos; };
  fast::torch::ModuleOptions options;
  options.own_loss = squares;
  std::string text;
  try {
    trained_for(zeros(1, 1), options)->train({inputs, {}, {2}, targets, {}});
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK_THAT(text, ContainsSubstring("torch: forward() failed with inputs [2, 2]: "));
  CHECK(has_one_line(text));
  options.own_loss = [](const Tensor& outputs, const Tensor&) {
    const Tensor roots = (outputs + 2).sqrt();
    const Tensor loss = roots.sum();
    roots.zero_();  // the backward pass needs them
    return loss;
  };
  try {
    trained_for(zeros(2, 1), options)->train({inputs, {}, {2}, targets, {}});
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK_THAT(text, ContainsSubstring("torch: the backward pass failed: "));
  CHECK(has_one_line(text));
}

TEST_CASE("workers train with an own loss, and the summary has its measures") {
  std::vector<float> inputs, targets;
  for (int i = 0; i < 90; ++i) {
    inputs.push_back(static_cast<float>(i) / 45 - 1);
    targets.push_back(3 * inputs.back() + 0.5F);
  }
  const fast::data::Dataset samples("line", {1}, inputs, fast::data::Targets{targets, {}});
  const fast::data::Splits data{samples.slice(0, 72), samples.slice(72, 18), {}};
  fast::train::TrainerOptions trainer;
  trainer.progress = false;
  trainer.batch_size = 4;
  trainer.epochs = 60;
  fast::local::run(3, [&](const fast::Group& group) {
    fast::torch::ModuleOptions options;
    options.own_loss = squares;
    const auto line = zeros(1, 1, at::kFloat);
    const auto backend = trained_for(line, options);
    const auto summary = fast::train::train(group, fast::stencil::ring(), *backend, data, trainer);
    fast::require(summary.measures.size() == 1 && summary.measures[0].name == "mean_loss",
                  fast::ErrorKind::numeric, "the measure is missing");
    fast::require(summary.measures[0].mean_model < 1e-4, fast::ErrorKind::numeric,
                  "the mean loss is {}", summary.measures[0].mean_model);
    fast::require(std::fabs(line->weight.item<double>() - 3) < 0.05, fast::ErrorKind::numeric,
                  "the slope is {}", line->weight.item<double>());
  });
}

TEST_CASE("own losses that are no number with a gradient are refused in one line") {
  const std::vector<float> inputs{0, 1}, targets{1, 3};
  const Batch batch{inputs, {}, {1}, targets, {}};
  const auto trains = [&](const fast::torch::LossFunction& loss) {
    fast::torch::ModuleOptions options;
    options.own_loss = loss;
    trained_for(zeros(1, 1), options)->train(batch);
  };
  CHECK_THROWS_WITH(trains([](const Tensor& o, const Tensor&) { return o; }),
                    ContainsSubstring("returned 2 numbers; one is required"));
  CHECK_THROWS_WITH(trains([](const Tensor& o, const Tensor&) { return o.sum().detach(); }),
                    ContainsSubstring("without a gradient"));
  CHECK_THROWS_WITH(trains([](const Tensor& o, const Tensor& t) { return o.matmul(t); }),
                    ContainsSubstring("own_loss failed with outputs [2, 1] and targets [2]: "));
}
