// Export of trained models in the ONNX format (https://onnx.ai), for inference.
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/nn/model_spec.hpp>

#include <map>
#include <string>
#include <vector>

namespace fast::nn {

/// What an ONNX file says beside the model.
struct OnnxNotes {
  /// The first nodes of the graph compute (input - mean) / stddev, one entry for all channels, or
  /// one a channel (the input's first side). Without entries the input goes to the model as it is.
  std::vector<float> mean = {}, stddev = {};
  std::map<std::string, std::string> metadata = {};  ///< becomes metadata_props
  /// The graph subtracts these numbers first, one a channel. Its input is then of 64-bit floats,
  /// since 32-bit floats cannot tell such values apart. Empty: nothing is subtracted.
  std::vector<double> origins = {};
  /// The last nodes compute output × stddev + mean, one entry an output of a sample. Empty: none.
  std::vector<float> target_mean = {}, target_stddev = {};
};

/// The bytes of an ONNX file (operator set 17, IR version 8) of the model in evaluation mode. Its
/// input is "input" [batch x spec.input], its output "logits" [batch x classes]. `tensors` are the
/// parameters and buffers of the model by name, in host memory, all f32 or all f64. Throws
/// Error(argument) if a tensor is missing or does not fit, and if the notes do not fit the model.
std::string to_onnx(const ModelSpec& spec, const std::vector<TensorView>& tensors,
                    const OnnxNotes& notes = {});

/// The model of the library (lenet5, resnet20, an mlp or an lstm for 28x28 images) whose tensors
/// have exactly these names and shapes. Throws Error(argument) if there is none.
ModelSpec recognize(const std::vector<TensorView>& tensors);

}  // namespace fast::nn
