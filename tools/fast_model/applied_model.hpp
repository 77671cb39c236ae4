// A saved model that computes its outputs for the samples of a data set.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/data/load.hpp>
#include <fast/nn/network.hpp>
#include <fast/train/model_metadata.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>

namespace fast_model {

class AppliedModel {
 public:
  /// Of a file, a run's directory or a checkpoint. Throws Error(data), with the file and what is
  /// wrong, also for a file that does not say what its samples are.
  explicit AppliedModel(const std::string& path);

  const std::string& source() const { return source_; }  ///< the file or checkpoint
  const fast::train::ModelMetadata& note() const { return note_; }
  const fast::nn::LossSpec& loss() const { return loss_; }
  const fast::nn::Shape& output() const { return network_->output(); }  ///< of one sample
  bool has_classes() const { return note_.classes > 0; }
  /// By the name of the class, or its number where it has none.
  std::string label(std::size_t number) const;

  /// The samples of a batch, their numbers in the data set, and their outputs, row-major.
  using Take = std::function<void(const fast::Batch& batch, std::span<const std::size_t> numbers,
                                  std::span<const float> outputs)>;
  /// In the samples' order, on all cores that oneTBB may use and for whose passes there is memory.
  /// Passes are the same on any number of cores, and so are their outputs. Damaged samples are left
  /// out, with one warning. The samples have the model's shape.
  void apply(const fast::data::Dataset& samples, const Take& take);

 private:
  std::string source_;
  fast::train::ModelMetadata note_;
  fast::nn::LossSpec loss_;
  std::optional<fast::nn::Network<float>> network_;
};

/// The first of the largest logits, or of one logit the sign.
std::size_t predicted_class(std::span<const float> outputs);

/// Which samples a model is applied to.
struct DataChoice {
  std::string data, part = "test";
};

/// As the model takes them. What it knows of its data stands for options that are not set.
/// Throws Error(argument) and Error(data) where data and model do not fit each other.
fast::data::Dataset samples_for(const AppliedModel& model, const DataChoice& choice,
                                fast::data::LoadOptions reading, fast::data::Purpose purpose);

}  // namespace fast_model
