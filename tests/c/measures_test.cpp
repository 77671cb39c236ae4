// Measures of the caller's own, through the C interface.
#include <fstream>
#include <string>
#include <vector>

#include "c/tasks.hpp"
#include "support/temporary_directory.hpp"

using namespace c_test;

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
