#include "fast_model/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/nn/loss.hpp>
#include <memory>
#include <vector>

#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "fast_serve/answer.hpp"

namespace fast_model {

using namespace fast;

namespace {

/// As RFC 4180 has it.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Rows of a table, to a file that is whole or absent, or to standard output.
class Table {
 public:
  explicit Table(const std::string& to) {
    if (to != "-") file_ = std::make_unique<WholeFile>(to);
  }
  void write(const std::string& row) {
    if (file_) return file_->write(row + '\n');
    std::fputs((row + '\n').c_str(), stdout);
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  std::unique_ptr<WholeFile> file_;
};

/// What the columns of a model's outputs are.
class Answers {
 public:
  explicit Answers(const AppliedModel& model)
      : model_(model),
        has_label_(model.has_classes() || model.loss().kind == nn::Loss::cross_entropy),
        outputs_(static_cast<std::size_t>(model.output().back())) {
    require(model.output().size() == 1, ErrorKind::argument,
            "{}: the model has outputs for each step; fast-model evaluate takes it, predict takes "
            "models with one vector of outputs",
            printable(model.source()));
  }

  std::string heading() const {
    std::string row = has_label_ ? ",label" : "";
    for (std::size_t k = 0; k < outputs_; ++k) row += ',' + field(name(k));
    return row;
  }

  std::string row(std::span<const float> outputs) const {
    const std::vector<float> values =
        serve::answered(outputs, outputs_, serve::Output::probabilities, model_.loss().kind);
    std::string row;
    if (has_label_) row += ',' + field(model_.label(predicted_class(outputs)));
    for (const float value : values) row += fmt::format(",{}", value);
    return row;
  }

 private:
  std::string name(std::size_t k) const {
    const std::string_view kind = serve::name_of(serve::Output::probabilities, model_.loss().kind);
    if (kind == "probabilities" && outputs_ > 1 && has_label_)
      return "probability_" + model_.label(k);
    const std::string one = kind == "probabilities"        ? "probability"
                            : model_.note().target.empty() ? "value"
                                                           : model_.note().target;
    return outputs_ == 1 ? one : fmt::format("{}_{}", one, k);
  }

  const AppliedModel& model_;
  bool has_label_;
  std::size_t outputs_;
};

}  // namespace

void predict(const PredictOptions& options, const data::LoadOptions& reading) {
  if (options.to != "-") require_writable(options.to);
  AppliedModel model(options.model);
  const Answers answers(model);
  const data::Dataset samples =
      samples_for(model, options.data, reading, data::Purpose::prediction);
  const data::SampleSource* source = samples.source();
  const bool has_names = source != nullptr && !source->name_of(0).empty();
  Table table(options.to);
  table.write((has_names ? "file" : "sample") + answers.heading());
  std::size_t rows = 0;
  model.apply(samples, [&](const Batch& batch, std::span<const std::size_t> numbers,
                           std::span<const float> outputs) {
    const std::size_t width = outputs.size() / numbers.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto own = outputs.subspan(i * width, width);
      require(std::ranges::all_of(own, [](float x) { return std::isfinite(x); }), ErrorKind::data,
              "--data {}: sample {}: an output of the model is not finite; look at the "
              "values of the sample",
              printable(options.data.data), numbers[i]);
      const std::string name =
          has_names ? field(source->name_of(numbers[i])) : std::to_string(numbers[i]);
      table.write(name + answers.row(own));
    }
    rows += batch.count();
  });
  table.finish();
  if (options.to == "-") return;
  fmt::print("{}: {} rows\n", printable(options.to), rows);
}

}  // namespace fast_model
