// Losses and measures of the caller's own, through the C interface.
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "c/handles.hpp"
#include "c/programs.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace c_test;

// What programs have been compiled with stays where it is.
static_assert(offsetof(fast_batch, sample_sides) == 5 * sizeof(void*));
static_assert(offsetof(fast_batch, target_sides) == 5 * sizeof(void*) + 4);
static_assert(offsetof(fast_backend_functions, correct_in_step) == 6 * sizeof(void*));
static_assert(offsetof(fast_backend_functions, evaluate_task) == 8 * sizeof(void*));

namespace {

/// A line through numbers: outputs are weights · inputs + offset. Trained for the squared distance.
struct Line {
  std::vector<float> weights;  ///< the offset is the last
  float rate = 0.1F;

  double apart(const fast_batch& batch, std::size_t i) const {
    double output = weights.back();
    for (std::size_t v = 0; v < batch.values_per_sample; ++v) {
      output += double{weights[v]} * double{batch.inputs[i * batch.values_per_sample + v]};
    }
    return output - double{batch.targets[i]};
  }

  int train(const fast_batch& batch, double* loss) {
    if (batch.targets == nullptr || batch.labels != nullptr || batch.targets_per_sample != 1) {
      return 3;
    }
    std::vector<double> slopes(weights.size());
    *loss = 0;
    const auto count = static_cast<double>(batch.count);
    for (std::size_t i = 0; i < batch.count; ++i) {
      const double distance = apart(batch, i);
      *loss += distance * distance / count;
      for (std::size_t v = 0; v < weights.size(); ++v) {
        const bool is_offset = v == batch.values_per_sample;
        const float x = is_offset ? 1.0F : batch.inputs[i * batch.values_per_sample + v];
        slopes[v] += 2 * distance * double{x} / count;
      }
    }
    for (std::size_t v = 0; v < weights.size(); ++v)
      weights[v] -= rate * static_cast<float>(slopes[v]);
    return 0;
  }

  int evaluate(const fast_batch& batch, double* loss_sum, fast_measures* measures) {
    for (std::size_t i = 0; i < batch.count; ++i) {
      const double distance = apart(batch, i), square = distance * distance;
      *loss_sum += square;
      fast_measures_add(measures, "rmse", FAST_MEASURE_ROOT_OF_MEAN, square, 1);
      fast_measures_add(measures, "too_high", FAST_MEASURE_SHARE, distance > 0 ? 1 : 0, 1);
      fast_measures_add_score(measures, "auc", distance, batch.targets[i] > 0 ? 1 : 0);
    }
    return 0;
  }
};

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

template <class Model>
fast_backend_functions task_functions() {
  fast_backend_functions made{};
  made.struct_size = sizeof made;
  made.name = "own loss in C";
  made.train = [](void* user, const fast_batch* batch, auto, void*, double* loss) {
    return static_cast<Model*>(user)->train(*batch, loss);
  };
  made.set_learning_rate = [](void* user, double rate) {
    static_cast<Model*>(user)->rate = static_cast<float>(rate);
    return 0;
  };
  made.evaluate_task = [](void* user, const fast_batch* batch, double* loss_sum,
                          fast_measures* measures) {
    return static_cast<Model*>(user)->evaluate(*batch, loss_sum, measures);
  };
  return made;
}

template <class Model>
struct TaskBackend {
  TaskBackend(Model& model, std::vector<float>& values,
              const fast_backend_functions& with = task_functions<Model>()) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(values.size())};
    const fast_tensor view = tensor("w", values.data(), shape, 1);
    REQUIRE(fast_backend_create(&with, &model, &view, 1, &handle) == FAST_OK);
  }
  ~TaskBackend() { fast_backend_free(handle); }
  TaskBackend(const TaskBackend&) = delete;
  TaskBackend& operator=(const TaskBackend&) = delete;
  fast::Backend& operator*() const { return *handle->backend; }
  fast_backend* handle = nullptr;
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

TEST_CASE("measures in C are those that a hand computes, and add up over batches") {
  const std::vector<float> inputs{0, 1, 2, 3}, targets{1, 3, -2, -5};
  Line line{{1, 1}};  // outputs 1, 2, 3, 4: off by 0, -1, 5, 9
  const TaskBackend<Line> backend(line, line.weights);
  fast::Evaluation found;
  for (std::size_t i : {0U, 2U}) {
    found.add((*backend).evaluate(
        {std::span(inputs).subspan(i, 2), {}, {1}, std::span(targets).subspan(i, 2), {}}));
  }
  CHECK(found.loss_sum == 107);
  REQUIRE(found.measures.size() == 3);
  CHECK(found.measures[0].name == "rmse");
  CHECK(found.measures[0].value() == Approx(std::sqrt(107 / 4.0)));
  CHECK(found.measures[1].value() == 0.5);
  CHECK(found.measures[2].value() == 0);  // all scores of class 1 are below those of class 0
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

TEST_CASE("measures in C with a wrong form, count or name are refused in one line") {
  CHECK(fast_measures_add(nullptr, "mae", FAST_MEASURE_MEAN, 1, 1) == FAST_ERROR_ARGUMENT);
  struct Wrong : Line {
    int evaluate(const fast_batch&, double*, fast_measures* measures) {
      const auto refused = [](fast_status status, const char* text) {
        return status != FAST_OK && std::string(fast_last_error()).find(text) != std::string::npos;
      };
      const auto add = [&](const char* name, int form, double count) {
        return fast_measures_add(measures, name, static_cast<fast_measure_form>(form), 1, count);
      };
      if (!refused(add("mae", 9, 1), "form 9")) return 11;
      if (!refused(add("mae", 1, -1), "count of -1")) return 12;
      if (!refused(add(nullptr, 1, 1), "name is NULL")) return 13;
      if (!refused(add("f 1", 1, 1), "\"f 1\"")) return 14;
      if (!refused(add("loss", 1, 1), "\"loss\"")) return 14;
      if (add("mae", 1, 1) != FAST_OK) return 15;
      if (!refused(add("mae", 0, 1), "do not add up")) return 16;
      if (!refused(fast_measures_add_score(measures, "mae", 1, 1), "another name")) return 17;
      return as_expected = 0;
    }
    int as_expected = 1;
  };
  const std::vector<float> inputs{0}, targets{1};
  Wrong model;
  model.weights = {0, 0};
  const TaskBackend<Wrong> backend(model, model.weights);
  // The first reason, although the function returns 0.
  CHECK_THROWS_WITH((*backend).evaluate({inputs, {}, {1}, targets, {}}),
                    ContainsSubstring("fast_measures_add: form 9"));
  CHECK(model.as_expected == 0);
}

namespace {

/// Whether the first of two inputs is the larger one. Measured for each class: recall of class 1
/// and specificity of class 0, in the order in which samples come.
struct ByClass {
  std::vector<float> weights;
  float rate = 0.1F;
  bool measures_some = true;

  double margin(const fast_batch& batch, std::size_t i) const {
    return double{weights[0]} * double{batch.inputs[2 * i]} +
           double{weights[1]} * double{batch.inputs[2 * i + 1]};
  }
  static double sign_of(const fast_batch& batch, std::size_t i) {
    return batch.labels[i] == 1 ? 1 : -1;
  }
  int train(const fast_batch& batch, double* loss) {
    *loss = 0;
    const auto count = static_cast<double>(batch.count);
    double slopes[2] = {0, 0};
    for (std::size_t i = 0; i < batch.count; ++i) {
      const double sign = sign_of(batch, i), power = std::exp(-sign * margin(batch, i));
      *loss += std::log1p(power) / count;
      for (std::size_t v : {0U, 1U}) {
        slopes[v] -= sign * power / (1 + power) * double{batch.inputs[2 * i + v]} / count;
      }
    }
    for (std::size_t v : {0U, 1U}) weights[v] -= rate * static_cast<float>(slopes[v]);
    return 0;
  }
  int evaluate(const fast_batch& batch, double* loss_sum, fast_measures* measures) const {
    for (std::size_t i = 0; i < batch.count; ++i) {
      const double sign = sign_of(batch, i);
      *loss_sum += std::log1p(std::exp(-sign * margin(batch, i)));
      const char* name = sign > 0 ? "recall" : "specificity";
      const int is_right = sign * margin(batch, i) > 0 ? 1 : 0;
      if (measures_some) fast_measures_add(measures, name, FAST_MEASURE_SHARE, is_right, 1);
    }
    return 0;
  }
};

}  // namespace

TEST_CASE("workers in C measure each class apart, also where their test samples lack one") {
  const fast::testing::TemporaryDirectory directory;
  const std::string table = (directory.path() / "train.csv").string(),
                    tests = (directory.path() / "test.csv").string();
  std::ofstream train(table), test(tests);
  for (std::ofstream* file : {&train, &test}) *file << "a,b,label\n";
  for (int i = 0; i < 120; ++i) {
    const double a = i * 37 % 120 / 60.0 - 1, b = i * 53 % 120 / 60.0 - 1;
    train << a << ',' << b << ',' << (a > b ? 1 : 0) << '\n';
  }
  // Four samples for each of three workers: of class 1, of class 0, of both.
  for (const int label : {1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1}) {
    test << label - 0.5 << ',' << 0.5 - label << ',' << label << '\n';
  }
  for (std::ofstream* file : {&train, &test}) file->close();
  for (const bool measures_some : {true, false}) {
    const fast_status status = run_local(3, [&](fast_group* group) {
      ByClass model{{0, 0}, 0.1F, measures_some};
      const TaskBackend<ByClass> backend(model, model.weights);
      Options options;
      options.set("deadline", "60");
      options.set("target", "label");
      options.set("test_data", tests.c_str());
      options.set("epochs", "20");
      options.set("batch_size", "4");
      options.set("learning_rate", "0.5");
      const char* summary = nullptr;
      if (fast_train(group, "ring", backend.handle, table.c_str(), options.handle, &summary) !=
          FAST_OK) {
        return 1;
      }
      const std::string text = summary;
      if (text.find("accuracy") != text.npos) return 2;
      if (!measures_some) return text.find("test mean_loss, mean model") == text.npos ? 3 : 0;
      for (const std::string row : {"test recall, mean model", "test specificity, mean model"}) {
        if (text.find(row) == text.npos) return 4;
        if (std::stod(text.substr(text.find(row) + row.size())) != 100) return 5;
      }
      return 0;
    });
    INFO(fast_last_error());
    REQUIRE(status == FAST_OK);
  }
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
