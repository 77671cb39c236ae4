#include "fast_serve/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/message.hpp"

namespace fast::serve {

std::vector<float> softmax(std::span<const float> logits, std::size_t classes) {
  std::vector<float> all;
  all.reserve(logits.size());
  std::vector<double> powers(classes);
  for (std::size_t row = 0; row < logits.size(); row += classes) {
    const auto own = logits.subspan(row, classes);
    const double largest = *std::ranges::max_element(own);
    double sum = 0;
    for (std::size_t i = 0; i < classes; ++i) sum += powers[i] = std::exp(own[i] - largest);
    for (const double power : powers) all.push_back(static_cast<float>(power / sum));
  }
  return all;
}

std::vector<float> answered(std::span<const float> outputs, std::size_t classes, Output output,
                            nn::Loss loss) {
  if (name_of(output, loss) != "probabilities") return {outputs.begin(), outputs.end()};
  if (loss == nn::Loss::cross_entropy) return softmax(outputs, classes);
  std::vector<float> all;
  for (const double x : outputs) all.push_back(static_cast<float>(1 / (1 + std::exp(-x))));
  return all;
}

namespace {

/// The name of a class, as JSON; its number if it has none.
std::string label_of(std::size_t number, const std::vector<std::string>& names) {
  if (number >= names.size()) return std::to_string(number);
  return nlohmann::json(names[number])
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string_view name_of(Output output, nn::Loss loss) {
  if (loss == nn::Loss::mse || loss == nn::Loss::huber) return "values";
  return output == Output::logits ? "logits" : "probabilities";
}

std::string json_answer(std::span<const float> logits, std::size_t classes, Output output,
                        std::string_view version, nn::Loss loss,
                        const std::vector<std::string>& class_names) {
  const std::vector<float> values = answered(logits, classes, output, loss);
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, R"({{"predictions":[)");
  for (std::size_t row = 0; row < logits.size(); row += classes) {
    fmt::format_to(out, "{}{{", row == 0 ? "" : ",");
    if (loss == nn::Loss::cross_entropy) {
      const auto own = logits.subspan(row, classes);
      const auto best = static_cast<std::size_t>(std::ranges::max_element(own) - own.begin());
      fmt::format_to(out, R"("label":{},"class":{},)", label_of(best, class_names), best);
    }
    fmt::format_to(out, R"("{}":[)", name_of(output, loss));
    for (std::size_t i = 0; i < classes; ++i) {
      fmt::format_to(out, "{}{}", i == 0 ? "" : ",", values[row + i]);
    }
    fmt::format_to(out, "]}}");
  }
  fmt::format_to(out, R"(],"model_version":"{}"}})", version);
  text.push_back('\n');
  return fmt::to_string(text);
}

std::string raw_answer(std::span<const float> logits, std::size_t classes, Output output,
                       nn::Loss loss) {
  const std::vector<float> values = answered(logits, classes, output, loss);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string error_answer(std::string_view text) {
  return nlohmann::json{{"error", printable(text)}}.dump() + "\n";
}

}  // namespace fast::serve
