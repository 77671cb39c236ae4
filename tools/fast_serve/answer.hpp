// Writes predictions as clients get them.
#pragma once

#include <fast/nn/loss.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::serve {

enum class Output { logits, probabilities };

/// exp(x_i) / Σ_j exp(x_j) of each row of `classes` logits, computed in double.
std::vector<float> softmax(std::span<const float> logits, std::size_t classes);

/// What is answered for `classes` outputs a sample: the outputs, or probabilities.
std::vector<float> answered(std::span<const float> outputs, std::size_t classes, Output output,
                            nn::Loss loss);

/// {"predictions": [{"label": "cat", "class": 3, "probabilities": [...]}, ...], "model_version":
/// "..."}. The class is the first of the largest logits, and the label its name; without names, the
/// label is the class. Numbers have as many digits as tell a float32 from all others. Predictions
/// of models that learned other losses have no label: binary_cross_entropy has 1/(1 + exp(-x)) of
/// each output as probabilities, regressions have their outputs as "values".
std::string json_answer(std::span<const float> logits, std::size_t classes, Output output,
                        std::string_view version, nn::Loss loss = nn::Loss::cross_entropy,
                        const std::vector<std::string>& class_names = {});

/// The bytes in memory: little-endian, row-major.
std::string raw_answer(std::span<const float> logits, std::size_t classes, Output output,
                       nn::Loss loss = nn::Loss::cross_entropy);

/// The name of what is answered: "logits", "probabilities" or "values".
std::string_view name_of(Output output, nn::Loss loss);

/// {"error": "..."}
std::string error_answer(std::string_view text);

}  // namespace fast::serve
