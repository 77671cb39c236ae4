// Weights that answer requests: a network in evaluation mode, and the hash that names it.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/nn/network.hpp>
#include <fast/train/checkpoint.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "serve/instances.hpp"

namespace fast::serve {

/// What training applied to the values of samples; nothing: they are taken as they are.
using Normalizing = std::optional<data::Normalization>;

/// Does not change. Several threads may compute with it.
class ModelVersion {
 public:
  /// `sample` is the shape of what clients send, which the model takes. `tensors` has the model's
  /// parameters and buffers by name, all f32; more are ignored. `source` is for messages. Throws
  /// Error(data) when a tensor is missing, has another shape or type, or has values that are not
  /// finite, and for a model with outputs for each step; Error(argument) when the normalization
  /// does not fit.
  ModelVersion(const nn::ModelSpec& spec, nn::Shape sample, const std::vector<TensorView>& tensors,
               Normalizing normalizing, std::string source,
               nn::Loss loss = nn::Loss::cross_entropy);
  ~ModelVersion();

  /// XXH3 of names, shapes and values of the tensors, and of the normalization: 16 digits. Models
  /// of the same hash give the same answers.
  const std::string& hash() const { return hash_; }
  const std::string& source() const { return source_; }  ///< the path
  const nn::ModelSpec& spec() const { return spec_; }
  const nn::Shape& sample() const { return sample_; }
  std::size_t sample_values() const { return sample_values_; }
  std::size_t classes() const { return classes_; }  ///< outputs of a sample
  const Normalizing& normalizing() const { return normalizing_; }
  nn::Loss loss() const { return loss_; }  ///< it says what the outputs mean

  /// The values as the network takes them: data::Dataset::gather() computes them as in training.
  /// Tokens stay the numbers that they are. Throws Refusal(400) for tokens that the model does not
  /// have, and for other bytes that are said to be normalized.
  std::vector<float> inputs(Instances instances) const;

  /// The logits [count x classes] of `count` samples, as nn::Network::forward() computes them.
  std::vector<float> forward(std::span<const float> inputs, std::size_t count) const;

 private:
  class Lease;

  std::string hash_of(const std::vector<TensorView>& tensors) const;
  std::unique_ptr<nn::Network<float>> take_network() const;

  nn::ModelSpec spec_;
  nn::Shape sample_;
  Normalizing normalizing_;
  std::string source_, hash_;
  nn::Loss loss_;
  std::size_t sample_values_ = 0, classes_ = 0;
  std::unique_ptr<nn::Network<float>> first_;  ///< has the parameters
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<nn::Network<float>>> idle_;
};

}  // namespace fast::serve
