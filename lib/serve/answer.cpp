#include "serve/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fast/core/message.hpp>
#include <iterator>
#include <nlohmann/json.hpp>

namespace fast::serve {

std::vector<float> softmax(std::span<const float> logits, std::size_t classes) {
  std::vector<float> all;
  all.reserve(logits.size());
  std::vector<double> powers(classes);
  for (std::size_t row = 0; row < logits.size(); row += classes) {
    const auto own = logits.subspan(row, classes);
    const double largest = *std::max_element(own.begin(), own.end());
    double sum = 0;
    for (std::size_t i = 0; i < classes; ++i) sum += powers[i] = std::exp(own[i] - largest);
    for (const double power : powers) all.push_back(static_cast<float>(power / sum));
  }
  return all;
}

std::string json_answer(std::span<const float> logits, std::size_t classes, Output output,
                        std::string_view version) {
  const bool as_logits = output == Output::logits;
  const std::vector<float> probabilities =
      as_logits ? std::vector<float>() : softmax(logits, classes);
  const std::span<const float> values = as_logits ? logits : probabilities;
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, R"({{"predictions":[)");
  for (std::size_t row = 0; row < logits.size(); row += classes) {
    const auto own = logits.subspan(row, classes);
    const auto label = std::max_element(own.begin(), own.end()) - own.begin();
    fmt::format_to(out, R"({}{{"label":{},"{}":[)", row == 0 ? "" : ",", label,
                   as_logits ? "logits" : "probabilities");
    for (std::size_t i = 0; i < classes; ++i) {
      fmt::format_to(out, "{}{}", i == 0 ? "" : ",", values[row + i]);
    }
    fmt::format_to(out, "]}}");
  }
  fmt::format_to(out, R"(],"model_version":"{}"}})", version);
  text.push_back('\n');
  return fmt::to_string(text);
}

std::string raw_answer(std::span<const float> logits, std::size_t classes, Output output) {
  const std::vector<float> probabilities =
      output == Output::logits ? std::vector<float>() : softmax(logits, classes);
  const std::span<const float> values = output == Output::logits ? logits : probabilities;
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

std::string error_answer(std::string_view text) {
  return nlohmann::json{{"error", printable(text)}}.dump() + "\n";
}

}  // namespace fast::serve
