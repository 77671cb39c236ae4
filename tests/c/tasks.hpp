// Models in C with losses and measures of their own, behind the callbacks.
#pragma once

#include <cstddef>
#include <vector>

#include "c/handles.hpp"
#include "c/programs.hpp"
#include "support/catch.hpp"

namespace c_test {

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

}  // namespace c_test
