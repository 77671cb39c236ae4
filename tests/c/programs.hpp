// What the tests of the C interface share: tensors, options, workers as lambdas, a small model.
#pragma once

#include <fast/fast.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"

namespace c_test {

inline fast_tensor tensor(const char* name, void* data, const std::int64_t* shape,
                          std::int32_t sides, fast_dtype dtype = FAST_F32) {
  return {name, data, shape, nullptr, sides, dtype, FAST_PARAMETER};
}

struct Options {
  Options() { REQUIRE(fast_options_create(&handle) == FAST_OK); }
  ~Options() { fast_options_free(handle); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  void set(const char* name, const char* value) {
    REQUIRE(fast_options_set(handle, name, value) == FAST_OK);
  }
  fast_options* handle = nullptr;
};

/// A worker's part, as a lambda.
template <class Part>
fast_status run_local(int workers, const Part& part) {
  return fast_run_local(
      workers,
      [](fast_group* group, void* user) { return (*static_cast<const Part*>(user))(group); },
      const_cast<void*>(static_cast<const void*>(&part)));
}

/// Softmax regression behind the callbacks.
struct Regression {
  std::size_t inputs, classes;
  std::vector<float> weights, biases, weight_gradients, bias_gradients;
  float rate = 0.05F;
  std::size_t correct = 0;  ///< in the latest step
  static inline std::atomic<int> alive{0};

  Regression(std::size_t inputs_, std::size_t classes_, std::uint64_t seed)
      : inputs(inputs_), classes(classes_), weights(inputs_ * classes_), biases(classes_) {
    std::uint64_t state = seed * 2654435761U + 1;
    for (float& weight : weights) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      weight = 0.2F * (static_cast<float>(state >> 40) / static_cast<float>(1 << 24) - 0.5F);
    }
    ++alive;
  }
  ~Regression() { --alive; }

  bool forward(const fast_batch& batch, std::size_t i, std::vector<float>& p, double& loss) const {
    const float* x = batch.inputs + i * inputs;
    const std::int32_t label = batch.labels[i];
    if (batch.values_per_sample != inputs || label < 0 ||
        static_cast<std::size_t>(label) >= classes)
      return false;
    float sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      p[c] = biases[c];
      for (std::size_t v = 0; v < inputs; ++v) p[c] += weights[c * inputs + v] * x[v];
      sum += p[c] = std::exp(p[c]);
    }
    for (float& value : p) value /= sum;
    loss -= std::log(static_cast<double>(p[static_cast<std::size_t>(label)]));
    return true;
  }

  int train(const fast_batch& batch, int (*hook)(void*, const fast_tensor*, std::size_t),
            void* context, double* loss) {
    weight_gradients.assign(weights.size(), 0);
    bias_gradients.assign(biases.size(), 0);
    std::vector<float> p(classes);
    *loss = 0;
    correct = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
      if (!forward(batch, i, p, *loss)) return 7;
      correct += std::ranges::max_element(p) - p.begin() == batch.labels[i] ? 1 : 0;
      p[static_cast<std::size_t>(batch.labels[i])] -= 1;
      for (std::size_t c = 0; c < classes; ++c) {
        const float grad = p[c] / static_cast<float>(batch.count);
        bias_gradients[c] += grad;
        for (std::size_t v = 0; v < inputs; ++v)
          weight_gradients[c * inputs + v] += grad * batch.inputs[i * inputs + v];
      }
    }
    *loss /= static_cast<double>(batch.count);
    if (hook != nullptr) {
      const std::int64_t shapes[] = {static_cast<std::int64_t>(classes),
                                     static_cast<std::int64_t>(inputs)};
      const fast_tensor gradients[] = {tensor("weights", weight_gradients.data(), shapes, 2),
                                       tensor("biases", bias_gradients.data(), shapes, 1)};
      if (hook(context, gradients, 2) != 0) return 8;
    }
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * weight_gradients[i];
    for (std::size_t c = 0; c < classes; ++c) biases[c] -= rate * bias_gradients[c];
    return 0;
  }

  double norm() const {
    double square = 0;
    for (const auto* gradients : {&weight_gradients, &bias_gradients}) {
      for (const float grad : *gradients) square += double{grad} * double{grad};
    }
    return std::sqrt(square);
  }

  int evaluate(const fast_batch& batch, double* loss, std::size_t* correct) const {
    std::vector<float> p(classes);
    for (std::size_t i = 0; i < batch.count; ++i) {
      if (!forward(batch, i, p, *loss)) return 7;
      const auto best = std::max_element(p.begin(), p.end()) - p.begin();
      *correct += best == batch.labels[i] ? 1 : 0;
    }
    return 0;
  }
};

inline const fast_backend_functions functions{
    sizeof(fast_backend_functions),
    "regression in C",
    [](void* user, const fast_batch* batch, auto hook, void* context, double* loss) {
      return static_cast<Regression*>(user)->train(*batch, hook, context, loss);
    },
    [](void* user, const fast_batch* batch, double* loss, std::size_t* correct) {
      return static_cast<const Regression*>(user)->evaluate(*batch, loss, correct);
    },
    [](void* user, double rate) {
      static_cast<Regression*>(user)->rate = static_cast<float>(rate);
      return 0;
    },
    [](void* user) { delete static_cast<Regression*>(user); },
    [](void* user, std::size_t* correct) {
      *correct = static_cast<const Regression*>(user)->correct;
      return 0;
    },
    [](void* user, double* norm) {
      *norm = static_cast<const Regression*>(user)->norm();
      return 0;
    },
    nullptr};

inline fast_backend* make_regression(std::size_t inputs, std::size_t classes, std::uint64_t seed) {
  auto* model = new Regression(inputs, classes, seed);
  const std::int64_t shape[] = {static_cast<std::int64_t>(classes),
                                static_cast<std::int64_t>(inputs)};
  const fast_tensor tensors[] = {tensor("weights", model->weights.data(), shape, 2),
                                 tensor("biases", model->biases.data(), shape, 1)};
  fast_backend* backend = nullptr;
  fast_backend_create(&functions, model, tensors, 2, &backend);
  return backend;
}

}  // namespace c_test
