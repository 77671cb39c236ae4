// Losses of the caller's own, through the C interface.
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "c/tasks.hpp"
#include "support/temporary_directory.hpp"

using namespace c_test;

// What programs have been compiled with stays where it is.
static_assert(offsetof(fast_batch, sample_sides) == 5 * sizeof(void*));
static_assert(offsetof(fast_batch, target_sides) == 5 * sizeof(void*) + 4);
static_assert(offsetof(fast_backend_functions, correct_in_step) == 6 * sizeof(void*));
static_assert(offsetof(fast_backend_functions, evaluate_task) == 8 * sizeof(void*));

namespace {

/// A class for each step by its frequency alone: the logits do not depend on the inputs.
struct Frequencies {
  std::vector<float> logits;
  float rate = 1;

  std::vector<double> shares() const {
    std::vector<double> all;
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    for (const float logit : logits) all.push_back(std::exp(double{logit}) / sum);
    return all;
  }
  static std::size_t labels(const fast_batch& batch) {
    return batch.count * batch.targets_per_sample;
  }
  int train(const fast_batch& batch, double* loss) {
    const std::vector<double> p = shares();
    *loss = 0;
    const auto count = static_cast<double>(labels(batch));
    for (std::size_t i = 0; i < labels(batch); ++i) {
      const auto label = static_cast<std::size_t>(batch.labels[i]);
      *loss -= std::log(p[label]) / count;
      logits[label] += static_cast<float>(double{rate} / count);
    }
    for (std::size_t c = 0; c < p.size(); ++c) logits[c] -= static_cast<float>(double{rate} * p[c]);
    return 0;
  }
  int evaluate(const fast_batch& batch, double* loss_sum, fast_measures* measures) const {
    const std::vector<double> p = shares();
    for (std::size_t i = 0; i < labels(batch); ++i) {
      const double loss = -std::log(p[static_cast<std::size_t>(batch.labels[i])]);
      *loss_sum += loss / static_cast<double>(batch.targets_per_sample);
      fast_measures_add(measures, "perplexity", FAST_MEASURE_EXP_OF_MEAN, loss, 1);
    }
    return 0;
  }
};

}  // namespace

TEST_CASE("a regression in C finds the least squares line") {
  // Sums over x = 0, 1, 2, 3 and t = 1, 3, 2, 5 give the slope 11/10 and the offset 11/10.
  const std::vector<float> inputs{0, 1, 2, 3}, targets{1, 3, 2, 5};
  const fast::Batch batch{inputs, {}, {1}, targets, {}};
  Line line{{0, 0}};
  const TaskBackend<Line> backend(line, line.weights);
  for (int step = 0; step < 1000; ++step) (*backend).train(batch);
  CHECK(line.weights[0] == Approx(1.1).margin(1e-4));
  CHECK(line.weights[1] == Approx(1.1).margin(1e-4));
}

TEST_CASE("labels for each step reach a model in C, whose best loss is their entropy") {
  // Of six labels, 0 stands there three times, 1 twice, 2 once.
  const std::vector<float> inputs(2 * 3 * 4);
  const std::vector<std::int32_t> labels{0, 1, 0, 2, 0, 1};
  const fast::Batch batch{inputs, labels, {3, 4}, {}, {3}};
  Frequencies model{{0, 0, 0}};
  const TaskBackend<Frequencies> backend(model, model.logits);
  double loss = 0;
  for (int step = 0; step < 300; ++step) loss = (*backend).train(batch);
  const double entropy = std::log(2) / 2 + std::log(3) / 3 + std::log(6) / 6;
  CHECK(loss == Approx(entropy).epsilon(1e-5));
  const fast::Evaluation found = (*backend).evaluate(batch);
  CHECK(found.loss_sum == Approx(2 * entropy).epsilon(1e-5));
  CHECK(found.measures.at(0).value() == Approx(std::exp(entropy)).epsilon(1e-5));
}

TEST_CASE("workers train a regression in C from a table, and the summary has its measures") {
  const fast::testing::TemporaryDirectory directory;
  const std::string table = (directory.path() / "plane.csv").string();
  std::ofstream csv(table);
  csv << "a,b,t\n";
  for (int i = 0; i < 90; ++i) {
    const double a = i % 9 / 4.5 - 1, b = i % 10 / 5.0 - 1;
    csv << a << ',' << b << ',' << 3 * a - 2 * b + 0.5 << '\n';
  }
  csv.close();
  std::vector<Line> lines(3, {{0, 0, 0}});
  const fast_status status = run_local(3, [&](fast_group* group) {
    Line& line = lines[static_cast<std::size_t>(fast_group_rank(group))];
    const TaskBackend<Line> backend(line, line.weights);
    Options options;
    options.set("deadline", "60");
    options.set("target", "t");
    options.set("features", "a,b");
    options.set("target_type", "numbers");
    options.set("test_share", "0.2");
    options.set("split_seed", "2");
    options.set("epochs", "60");
    options.set("batch_size", "4");
    options.set("learning_rate", "0.2");
    const char* summary = nullptr;
    if (fast_train(group, "ring", backend.handle, table.c_str(), options.handle, &summary) !=
        FAST_OK) {
      return 1;
    }
    const std::string text = summary;
    const std::string row = "test rmse, mean model";
    if (text.find(row) == text.npos || text.find("test too_high, worst worker") == text.npos) {
      return 2;
    }
    return std::stod(text.substr(text.find(row) + row.size())) < 0.01 ? 0 : 3;
  });
  INFO(fast_last_error());
  REQUIRE(status == FAST_OK);
  // The plane gives all targets, so the best rmse is 0. Inputs are normalized.
  CHECK(lines[0].weights == lines[1].weights);
  CHECK(lines[0].weights == lines[2].weights);
  CHECK(lines[0].weights[0] > 0);
  CHECK(lines[0].weights[1] < 0);
}

TEST_CASE("an older backend in C refuses other tasks than one class label a sample") {
  const std::vector<float> inputs{0, 1}, targets{1, 3};
  Line line{{0, 0}};
  fast_backend_functions older = task_functions<Line>();
  older.evaluate = [](void*, const fast_batch*, double*, std::size_t*) { return 0; };
  older.struct_size = offsetof(fast_backend_functions, evaluate_task);
  const TaskBackend<Line> backend(line, line.weights, older);
  CHECK_THROWS_WITH((*backend).train({inputs, {}, {1}, targets, {}}),
                    ContainsSubstring("this model learns class labels"));
}

namespace {

fast_backend_functions softmax_by_task() {
  fast_backend_functions made = functions;
  made.evaluate = nullptr;
  made.evaluate_task = [](void* user, const fast_batch* batch, double* loss_sum,
                          fast_measures* measures) {
    std::size_t correct = 0;
    const int result = static_cast<const Regression*>(user)->evaluate(*batch, loss_sum, &correct);
    fast_measures_add(measures, "accuracy", FAST_MEASURE_SHARE, static_cast<double>(correct),
                      static_cast<double>(batch->count));
    return result;
  };
  return made;
}

}  // namespace

TEST_CASE("a classifier in C with measures of its own passes the suite") {
  const std::int64_t shape[] = {16};
  const char* report = "";
  const fast_status status = fast_check_backend(
      [](void*, std::uint64_t seed, fast_backend** backend) {
        auto* model = new Regression(16, 4, seed);
        const std::int64_t sides[] = {4, 16};
        const fast_tensor tensors[] = {tensor("weights", model->weights.data(), sides, 2),
                                       tensor("biases", model->biases.data(), sides, 1)};
        const fast_backend_functions by_task = softmax_by_task();
        return fast_backend_create(&by_task, model, tensors, 2, backend) == FAST_OK ? 0 : 1;
      },
      nullptr, shape, 1, 4, &report);
  INFO(report);
  CHECK(status == FAST_OK);
}

TEST_CASE("gradients in C that cannot be read end the step with the reason") {
  auto model = std::make_unique<Regression>(16, 4, 1);
  fast_backend_functions wrong = functions;
  wrong.destroy = nullptr;
  wrong.train = [](void*, const fast_batch*, auto hook, void* context, double*) {
    float gradient = 0;
    const std::int64_t shape[] = {1};
    const fast_tensor unnamed = tensor(nullptr, &gradient, shape, 1);
    return hook(context, &unnamed, 1) == 0 ? 0 : 9;
  };
  const TaskBackend<Regression> backend(*model, model->weights, wrong);
  const std::vector<float> inputs(16);
  const std::vector<std::int32_t> labels{0};
  CHECK_THROWS_WITH((*backend).train({inputs, labels, {16}}, [](const auto&) {}),
                    ContainsSubstring("a tensor's name is NULL"));
}
