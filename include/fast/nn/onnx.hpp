// Trained models for other programs to run: the ONNX format (https://onnx.ai), for inference.
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/nn/model_spec.hpp>

#include <string>
#include <vector>

namespace fast::nn {

/// The bytes of an ONNX file (operator set 15, IR version 8) of the model in evaluation mode, from
/// "input" [batch x spec.input] to "logits" [batch x classes]. `tensors` are the model's parameters
/// and buffers by name, in host memory; all f32 or all f64. Throws Error(argument) when one is
/// missing or does not fit, and for group normalization, which operator set 15 has not.
std::string to_onnx(const ModelSpec& spec, const std::vector<TensorView>& tensors);

/// Which of the library's models (lenet5, resnet20, an mlp or an lstm for 28x28 images) has tensors
/// of just those names and shapes. Throws Error(argument) when none has.
ModelSpec recognize(const std::vector<TensorView>& tensors);

}  // namespace fast::nn
