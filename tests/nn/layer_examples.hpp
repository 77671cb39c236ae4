// Examples of every layer. The tests of all layers alike take them: gradients, formulas, ONNX files
// and programs for GPUs.
#pragma once

#include <cmath>
#include <fast/nn/model_spec.hpp>

namespace fast::nn {

struct LayerExample {
  LayerSpec layer;
  Shape input;
  /// Of an elementwise layer: its definition.
  double (*formula)(double x) = nullptr;
};

inline std::vector<LayerExample> layer_examples() {
  return {
      {Dense{4}, {10}},
      {Conv2d{5, 3, 2, 1}, {3, 5, 7}},
      {Conv2d{4, 2, 1, 1, false}, {2, 4, 3}},
      {Relu{}, {7}, [](double x) { return std::fmax(x, 0); }},
      {Relu{}, {3, 4, 5}, [](double x) { return std::fmax(x, 0); }},
      {MaxPool{3, 2, 1}, {2, 5, 6}},
      {MaxPool{}, {8, 4, 5}},
      {Flatten{}, {2, 3, 5}},
      {BatchNorm{0.1, 0.1}, {3, 4, 3}},
      {GroupNorm{3, 0.1}, {6, 3, 2}},
      {GlobalAveragePool{}, {6, 5, 4}},
      {Lstm{4}, {5, 3}},
      {Lstm{4, true}, {3, 6}},
      {Residual{{Conv2d{3, 3, 1, 1}}, {}}, {3, 4, 4}},
      {Silu{}, {11}, [](double x) { return x / (1 + std::exp(-x)); }},
      {Silu{}, {3, 4, 5}, [](double x) { return x / (1 + std::exp(-x)); }},
      {LayerNorm{0.1}, {9}},
      {LayerNorm{0.1}, {4, 6}},
      {Embedding{7, 3}, {5}},
      {Dropout{0.25}, {12}},
      {Dropout{}, {2, 3, 5}},
      {Gelu{}, {11}, [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }},
      {Gelu{}, {3, 4, 5}, [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }},
      {AveragePool{}, {8, 4, 5}},
      {AveragePool{3, 2, 1}, {2, 5, 6}},
      {Gru{4}, {5, 3}},
      {Gru{3, true}, {4, 6}},
      {Conv1d{4, 3, 1, 1}, {6, 3}},
      {Conv1d{3, 2, 2, 0, false}, {7, 2}},
      {Dense{4}, {3, 5}},
      {Tanh{}, {11}, [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }},
      {Tanh{}, {3, 4, 5}, [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }},
      {Sigmoid{}, {11}, [](double x) { return std::exp(x) / (1 + std::exp(x)); }},
      {Sigmoid{}, {3, 4, 5}, [](double x) { return std::exp(x) / (1 + std::exp(x)); }},
      {LeakyRelu{}, {3, 7}, [](double x) { return std::fmax(x, 0) + 0.01 * std::fmin(x, 0); }},
      {LeakyRelu{0.3}, {3, 4, 5}, [](double x) { return std::fmax(x, 0) + 0.3 * std::fmin(x, 0); }},
      {Softmax{}, {9}},
      {Softmax{}, {4, 5}},
      {Position{}, {4, 5}},
      {Attention{1}, {4, 3}},
      {Attention{2}, {5, 6}},
      {Attention{3, true}, {4, 6}},
      {Residual{{LayerNorm{0.1}, Attention{2, true}}, {}}, {3, 4}},
      {Residual{{Dense{5}, Gelu{}, Dense{6}}, {Dense{6}}}, {4}},
      {Residual{{LayerNorm{0.1}, Dense{4}}, {}}, {3, 4}}};
}

/// A model of the example's layer.
inline ModelSpec model_of(const LayerExample& example) {
  return {describe(example.layer), example.input, {example.layer, Flatten{}, Dense{3}}};
}

}  // namespace fast::nn
