#include "fast_model/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/nn/loss.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "data/target_scale.hpp"

namespace fast_model {

using namespace fast;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_in_matrix = 4096;               ///< classes
constexpr std::size_t most_rows = 200, most_columns = 20;  ///< of tables for people

/// Of one class. Nothing where it has neither samples nor predictions.
struct ClassScore {
  std::int64_t samples = 0, predicted = 0, correct = 0;

  bool exists() const { return samples + predicted > 0; }
  std::optional<double> precision() const { return share_of(predicted); }
  std::optional<double> recall() const { return share_of(samples); }
  std::optional<double> f1() const {
    if (!exists()) return std::nullopt;
    return 2 * static_cast<double>(correct) / static_cast<double>(samples + predicted);
  }

 private:
  std::optional<double> share_of(std::int64_t all) const {
    if (!exists()) return std::nullopt;
    return all == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(all);
  }
};

/// What a model takes samples for.
class Classified {
 public:
  Classified() = default;
  explicit Classified(std::size_t classes) : scores_(classes) {
    if (classes <= most_in_matrix) matrix_.assign(classes, std::vector<std::int64_t>(classes));
  }

  void add(std::size_t label, std::size_t predicted) {
    ++total_;
    ++scores_[label].samples;
    ++scores_[predicted].predicted;
    if (label == predicted) ++scores_[label].correct;
    if (!matrix_.empty()) ++matrix_[label][predicted];
  }

  double accuracy() const {
    std::int64_t correct = 0;
    for (const ClassScore& score : scores_) correct += score.correct;
    return static_cast<double>(correct) / static_cast<double>(total_);
  }
  const std::vector<ClassScore>& scores() const { return scores_; }
  /// A row for each label, a column for each prediction; empty for many classes.
  const std::vector<std::vector<std::int64_t>>& matrix() const { return matrix_; }

 private:
  std::int64_t total_ = 0;
  std::vector<ClassScore> scores_;
  std::vector<std::vector<std::int64_t>> matrix_;
};

/// Of one output, or of them all. R² is 1 - Σ(t - y)² / Σ(t - mean t)²; nothing where all targets
/// are equal.
struct Regressed {
  double mae = 0, rmse = 0;
  std::optional<double> r2{};
};

struct Evaluated {
  std::size_t samples = 0;
  double loss = 0;                     ///< the mean over samples
  Classified classified{};             ///< of classifications
  std::vector<Regressed> regressed{};  ///< of regressions, one an output
};

using Measure = std::optional<double> (ClassScore::*)() const;
constexpr std::pair<const char*, Measure> measures[] = {{"precision", &ClassScore::precision},
                                                        {"recall", &ClassScore::recall},
                                                        {"f1", &ClassScore::f1}};

/// Over the classes that have samples or predictions.
double macro(const Classified& classified, Measure measure) {
  double sum = 0;
  int count = 0;
  for (const ClassScore& score : classified.scores()) {
    const std::optional<double> value = (score.*measure)();
    sum += value.value_or(0);
    count += value ? 1 : 0;
  }
  return sum / count;
}

/// One output after the other.
struct Pairs {
  std::vector<float> outputs{}, targets{};
};

Regressed regressed(const Pairs& all, std::size_t first, std::size_t step) {
  Regressed found;
  double mean = 0, squares = 0, spread = 0;
  std::size_t count = 0;
  for (std::size_t i = first; i < all.targets.size(); i += step) {
    const double difference = double{all.outputs[i]} - double{all.targets[i]};
    found.mae += std::fabs(difference);
    squares += difference * difference;
    mean += all.targets[i];
    ++count;
  }
  const auto n = static_cast<double>(count);
  mean /= n;
  for (std::size_t i = first; i < all.targets.size(); i += step)
    spread += (all.targets[i] - mean) * (all.targets[i] - mean);
  found.mae /= n;
  found.rmse = std::sqrt(squares / n);
  if (spread > 0) found.r2 = 1 - squares / spread;
  return found;
}

/// Of R²: over the outputs that have one.
Regressed mean_of(const std::vector<Regressed>& outputs) {
  Regressed mean;
  double squares = 0, r2 = 0;
  int count = 0;
  for (const Regressed& each : outputs) {
    mean.mae += each.mae / static_cast<double>(outputs.size());
    squares += each.rmse * each.rmse / static_cast<double>(outputs.size());
    r2 += each.r2.value_or(0);
    count += each.r2 ? 1 : 0;
  }
  mean.rmse = std::sqrt(squares);
  if (count > 0) mean.r2 = r2 / count;
  return mean;
}

class Tally {
 public:
  explicit Tally(const AppliedModel& model) : model_(model) {
    if (!model.has_classes()) return;
    found_.classified = Classified(static_cast<std::size_t>(
        std::max<std::int64_t>(model.note().classes, model.output().back())));
  }

  void add(const Batch& batch, std::span<const float> outputs) {
    found_.samples += batch.count();
    found_.loss += loss_as_trained(batch, outputs);
    if (model_.has_classes()) {
      const std::size_t width = outputs.size() / batch.labels.size();
      for (std::size_t i = 0; i < batch.labels.size(); ++i)
        found_.classified.add(static_cast<std::size_t>(batch.labels[i]),
                              predicted_class(outputs.subspan(i * width, width)));
      return;
    }
    const bool are_logits = model_.loss().kind == nn::Loss::binary_cross_entropy;
    for (const float x : outputs)
      all_.outputs.push_back(are_logits ? static_cast<float>(1 / (1 + std::exp(-double{x}))) : x);
    all_.targets.insert(all_.targets.end(), batch.targets.begin(), batch.targets.end());
  }

  Evaluated result(const std::string& from) {
    require(found_.samples > 0, ErrorKind::data, "--data {}: no sample can be read",
            printable(from));
    found_.loss /= static_cast<double>(found_.samples);
    const std::size_t outputs = all_.targets.size() / found_.samples;
    for (std::size_t k = 0; k < outputs; ++k)
      found_.regressed.push_back(regressed(all_, k, outputs));
    return std::move(found_);
  }

 private:
  double loss_as_trained(Batch batch, std::span<const float> outputs) const {
    const data::Normalization& scale = model_.note().normalization;
    if (scale.target_mean.empty()) return nn::loss_of(model_.loss(), outputs, batch).sum;
    const std::vector<float> targets = data::scaled(scale, batch.targets);
    batch.targets = targets;
    return nn::loss_of<float>(model_.loss(), data::scaled(scale, outputs), batch).sum;
  }

  const AppliedModel& model_;
  Evaluated found_;
  Pairs all_;
};

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json json_of(const AppliedModel& model, const Classified& classified) {
  Json json{{"accuracy", classified.accuracy()}};
  for (const auto& [name, measure] : measures)
    json[std::string("macro_") + name] = macro(classified, measure);
  Json classes = Json::array();
  for (std::size_t c = 0; c < classified.scores().size(); ++c) {
    const ClassScore& score = classified.scores()[c];
    Json row{{"class", c},
             {"label", model.label(c)},
             {"samples", score.samples},
             {"predicted", score.predicted}};
    for (const auto& [name, measure] : measures) row[name] = number_or_null((score.*measure)());
    classes.push_back(std::move(row));
  }
  json["classes"] = std::move(classes);
  if (!classified.matrix().empty()) json["confusion"] = classified.matrix();
  return json;
}

Json json_of(const Regressed& found) {
  return {{"mae", found.mae}, {"rmse", found.rmse}, {"r2", number_or_null(found.r2)}};
}

Json json_of(const EvaluateOptions& options, const AppliedModel& model, const Evaluated& found) {
  Json json{{"model", model.source()},
            {"data", options.data.data},
            {"samples", found.samples},
            {"task", model.has_classes() ? "classification" : "regression"},
            {"loss_function", nn::name(model.loss().kind)},
            {"loss", found.loss}};
  if (model.has_classes()) {
    json.update(json_of(model, found.classified));
    return json;
  }
  json.update(json_of(mean_of(found.regressed)));
  Json outputs = Json::array();
  for (const Regressed& each : found.regressed) outputs.push_back(json_of(each));
  if (outputs.size() > 1) json["outputs"] = std::move(outputs);
  return json;
}

void show(const char* name, const std::optional<double>& value) {
  fmt::print("{:<16}  {}\n", name, value ? fmt::format("{:.6g}", *value) : "-");
}

std::string rounded(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

void show_matrix(const std::vector<std::string>& labels, std::size_t width,
                 const std::vector<std::vector<std::int64_t>>& matrix) {
  const auto cell = [&](std::size_t c) { return std::max<std::size_t>(6, labels[c].size()); };
  fmt::print("\nConfusion matrix: a row is a class, a column what the model takes it for.\n{:<{}}",
             "", width);
  for (std::size_t c = 0; c < labels.size(); ++c) fmt::print("  {:>{}}", labels[c], cell(c));
  for (std::size_t c = 0; c < labels.size(); ++c) {
    fmt::print("\n{:<{}}", labels[c], width);
    for (std::size_t p = 0; p < labels.size(); ++p) fmt::print("  {:>{}}", matrix[c][p], cell(p));
  }
  fmt::print("\n");
}

void show_classes(const AppliedModel& model, const Classified& found) {
  const std::size_t classes = found.scores().size();
  std::vector<std::string> labels;
  std::size_t width = 5;
  for (std::size_t c = 0; c < classes; ++c) {
    labels.push_back(printable(model.label(c)));
    width = std::max(width, labels.back().size());
  }
  fmt::print("\n{:<{}}  {:>9}  {:>9}  {:>9}  {:>9}\n", "class", width, "precision", "recall", "F1",
             "samples");
  for (std::size_t c = 0; c < std::min(classes, most_rows); ++c) {
    const ClassScore& score = found.scores()[c];
    fmt::print("{:<{}}  {:>9}  {:>9}  {:>9}  {:>9}\n", labels[c], width, rounded(score.precision()),
               rounded(score.recall()), rounded(score.f1()), score.samples);
  }
  if (classes > most_rows) fmt::print("... and {} more\n", classes - most_rows);
  if (classes <= most_columns) show_matrix(labels, width, found.matrix());
}

void show(const EvaluateOptions& options, const AppliedModel& model, const Evaluated& found) {
  fmt::print("{}: {}\n{}: {} samples\n\n", printable(model.source()),
             train::task_text(model.note()), printable(options.data.data), found.samples);
  if (model.has_classes()) show("accuracy", found.classified.accuracy());
  show("loss", found.loss);
  if (!model.has_classes()) {
    const Regressed mean = mean_of(found.regressed);
    show("MAE", mean.mae);
    show("RMSE", mean.rmse);
    show("R²", mean.r2);
    for (std::size_t k = 0; found.regressed.size() > 1 && k < found.regressed.size(); ++k)
      fmt::print("output {:<9}  MAE {:.6g}, RMSE {:.6g}, R² {}\n", k, found.regressed[k].mae,
                 found.regressed[k].rmse, rounded(found.regressed[k].r2));
    return;
  }
  show("macro precision", macro(found.classified, &ClassScore::precision));
  show("macro recall", macro(found.classified, &ClassScore::recall));
  show("macro F1", macro(found.classified, &ClassScore::f1));
  show_classes(model, found.classified);
}

}  // namespace

void evaluate(const EvaluateOptions& options, const data::LoadOptions& reading) {
  const bool has_file = !options.json.empty() && options.json != "-";
  if (has_file) require_writable(options.json);
  AppliedModel model(options.model);
  const data::Dataset samples =
      samples_for(model, options.data, reading, data::Purpose::evaluation);
  Tally tally(model);
  model.apply(samples, [&](const Batch& batch, std::span<const std::size_t>,
                           std::span<const float> outputs) { tally.add(batch, outputs); });
  const Evaluated found = tally.result(options.data.data);
  if (options.json != "-") show(options, model, found);
  if (options.json.empty()) return;
  const std::string json =
      json_of(options, model, found).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  has_file ? write_whole(options.json, json) : void(std::fputs(json.c_str(), stdout));
}

}  // namespace fast_model
