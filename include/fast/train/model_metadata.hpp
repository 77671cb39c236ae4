// What a saved model needs to be used: how its samples look. A run writes it into the metadata of
// its mean model and of its checkpoints.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/train/safetensors.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::train {

/// | key | example | meaning |
/// |---|---|---|
/// | fast.model | lenet | the name that fast-train --model takes; missing if the run had none |
/// | fast.data | fashion-mnist | what the model was trained on; missing if the run had no name |
/// | fast.input | 1x28x28 | the shape of a sample |
/// | fast.layers | layers = [...] | the text of the model's file; missing for other models |
/// | fast.loss | mse | what it learned; missing: cross_entropy |
/// | fast.huber_delta | 0.5 | see nn::LossSpec; missing for other losses than huber |
/// | fast.classes | 10 | the number of labels; 0 for float targets |
/// | fast.features | ["age","height"] | a JSON list; missing where the values have no names |
/// | fast.class_names | ["cat","dog"] | by label; missing where the classes have no names |
/// | fast.target | price | what is predicted, by its name; missing where it has none |
/// | fast.mean, fast.stddev | 0.286 | of each channel, or of all; separated by commas |
/// | fast.origins | 1.7e9,0 | data::Normalization::origins; missing where nothing is subtracted |
/// | fast.target_mean, fast.target_stddev | 200.5 | of each target, if training scaled them: an
/// output z stands for z·stddev + mean |
struct ModelMetadata {
  std::string model;
  std::string data;
  std::vector<std::int64_t> input;
  int classes = 0;
  data::Normalization normalization{};  ///< that training applied to the values of samples
  std::string layers{};
  std::string loss{};
  std::vector<std::string> features{};     ///< names of the values, in their order
  std::vector<std::string> class_names{};  ///< by label
  std::string target{};
  double huber_delta = 1;
};

/// "classification, 3 classes: cat, dog, horse" or "regression, price", for people. Ten names at
/// most are listed.
std::string task_text(const ModelMetadata& note);

/// "1x28x28"
std::string shape_text(const std::vector<std::int64_t>& shape);
/// Nothing unless the text is one to eight positive numbers whose product is less than 2^40.
std::optional<std::vector<std::int64_t>> shape_of(std::string_view text);

Metadata to_metadata(const ModelMetadata& note);

/// Nothing when the metadata has no such note. Throws Error(data), which begins with `file`, when
/// an entry cannot be read. The numbers are the same bits as those that were written.
std::optional<ModelMetadata> model_note(const Metadata& metadata, std::string_view file);

}  // namespace fast::train
