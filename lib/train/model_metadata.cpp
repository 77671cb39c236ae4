#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/train/model_metadata.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast::train {
namespace {

constexpr char model_key[] = "fast.model", data_key[] = "fast.data", input_key[] = "fast.input",
               classes_key[] = "fast.classes", layers_key[] = "fast.layers",
               loss_key[] = "fast.loss", mean_key[] = "fast.mean", stddev_key[] = "fast.stddev",
               origins_key[] = "fast.origins", features_key[] = "fast.features",
               class_names_key[] = "fast.class_names", target_key[] = "fast.target",
               huber_delta_key[] = "fast.huber_delta", target_mean_key[] = "fast.target_mean",
               target_stddev_key[] = "fast.target_stddev";
constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::size_t most_sides = 8, most_names = 10;

/// The entries of a file's metadata.
class Entries {
 public:
  Entries(const Metadata& metadata, std::string_view file) : metadata_(metadata), file_(file) {}

  std::string text(const char* key) const {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? std::string() : found->second;
  }

  template <class T = float>
  std::vector<T> numbers(const char* key) const {
    std::vector<T> numbers;
    const std::string list = text(key);  // the parts are views of it
    for (const std::string_view part : split_text(list, ',')) {
      T number = 0;
      if (!reads(part, number) || !std::isfinite(number)) refuse(key);
      numbers.push_back(number);
    }
    return numbers;
  }

  std::vector<std::string> names(const char* key) const {
    if (!metadata_.contains(key)) return {};
    const auto list = nlohmann::json::parse(text(key), nullptr, false);
    if (!list.is_array()) refuse(key);
    std::vector<std::string> names;
    for (const auto& name : list) {
      if (!name.is_string()) refuse(key);
      names.push_back(name);
    }
    return names;
  }

  [[noreturn]] void refuse(const char* key) const {
    fail(ErrorKind::data,
         "{}: its metadata has {} \"{}\", which cannot be read; save the model again", file_, key,
         printable(text(key)));
  }

 private:
  const Metadata& metadata_;
  std::string_view file_;
};

/// Bytes of names that are not UTF-8 become U+FFFD.
std::string list_of(const std::vector<std::string>& names) {
  return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string task_text(const ModelMetadata& note) {
  if (note.classes == 0)
    return "regression" + (note.target.empty() ? "" : ", " + printable(note.target));
  std::string text = fmt::format("classification, {} classes", note.classes);
  for (std::size_t i = 0; i < std::min(note.class_names.size(), most_names); ++i)
    text += (i == 0 ? ": " : ", ") + printable(note.class_names[i]);
  return note.class_names.size() > most_names ? text + ", ..." : text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

std::optional<std::vector<std::int64_t>> shape_of(std::string_view text) {
  std::vector<std::int64_t> shape;
  std::int64_t product = 1;
  for (const std::string_view part : split_text(text, 'x')) {
    std::int64_t side = 0;
    if (!reads(part, side) || side <= 0 || side >= most_elements) return std::nullopt;
    if (shape.size() == most_sides || product > most_elements / side) return std::nullopt;
    product *= side;
    shape.push_back(side);
  }
  if (product >= most_elements) return std::nullopt;
  return shape;
}

Metadata to_metadata(const ModelMetadata& note) {
  Metadata metadata{{input_key, shape_text(note.input)},
                    {classes_key, std::to_string(note.classes)},
                    {mean_key, fmt::format("{}", fmt::join(note.normalization.mean, ","))},
                    {stddev_key, fmt::format("{}", fmt::join(note.normalization.stddev, ","))}};
  const std::vector<double>& origins = note.normalization.origins;
  if (!origins.empty()) metadata[origins_key] = fmt::format("{}", fmt::join(origins, ","));
  const std::vector<float>& means = note.normalization.target_mean;
  if (!means.empty()) {
    metadata[target_mean_key] = fmt::format("{}", fmt::join(means, ","));
    metadata[target_stddev_key] =
        fmt::format("{}", fmt::join(note.normalization.target_stddev, ","));
  }
  if (!note.model.empty()) metadata[model_key] = note.model;
  if (!note.data.empty()) metadata[data_key] = note.data;
  if (!note.layers.empty()) metadata[layers_key] = note.layers;
  if (!note.loss.empty()) metadata[loss_key] = note.loss;
  if (!note.features.empty()) metadata[features_key] = list_of(note.features);
  if (note.loss == "huber") metadata[huber_delta_key] = fmt::format("{}", note.huber_delta);
  if (!note.target.empty()) metadata[target_key] = note.target;
  if (!note.class_names.empty()) metadata[class_names_key] = list_of(note.class_names);
  return metadata;
}

std::optional<ModelMetadata> model_note(const Metadata& metadata, std::string_view file) {
  if (!metadata.contains(input_key)) return std::nullopt;
  const Entries entries(metadata, file);
  const auto input = shape_of(entries.text(input_key));
  if (!input) entries.refuse(input_key);
  ModelMetadata note{entries.text(model_key),  entries.text(data_key), *input, 0, {},
                     entries.text(layers_key), entries.text(loss_key)};
  if (!reads(std::string_view(entries.text(classes_key)), note.classes) || note.classes < 0) {
    entries.refuse(classes_key);
  }
  note.features = entries.names(features_key);
  note.class_names = entries.names(class_names_key);
  if (!note.class_names.empty() && std::cmp_not_equal(note.class_names.size(), note.classes))
    entries.refuse(class_names_key);
  note.target = entries.text(target_key);
  if (metadata.contains(huber_delta_key)) {
    note.huber_delta = entries.numbers<double>(huber_delta_key).front();
    if (note.huber_delta <= 0) entries.refuse(huber_delta_key);
  }
  note.normalization = {entries.numbers(mean_key), entries.numbers(stddev_key)};
  if (metadata.contains(origins_key)) {
    note.normalization.origins = entries.numbers<double>(origins_key);
    if (note.normalization.origins.size() != static_cast<std::size_t>(input->front()))
      entries.refuse(origins_key);
  }
  for (const float stddev : note.normalization.stddev) {
    if (stddev <= 0) entries.refuse(stddev_key);
  }
  if (!metadata.contains(target_mean_key)) return note;
  note.normalization.target_mean = entries.numbers(target_mean_key);
  note.normalization.target_stddev = entries.numbers(target_stddev_key);
  if (note.normalization.target_mean.size() != note.normalization.target_stddev.size() ||
      std::ranges::min(note.normalization.target_stddev) <= 0)
    entries.refuse(target_stddev_key);
  return note;
}

}  // namespace fast::train
