#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/formats.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/message.hpp"
#include "data/files/classes.hpp"
#include "data/files/contents.hpp"
#include "data/files/csv_table.hpp"
#include "data/files/origins.hpp"
#include "data/files/split.hpp"

namespace fast::data {
namespace {

/// The classes of a column of texts.
using ClassNames = std::vector<std::string>;

/// Every target is a number.
bool is_numeric(const CsvTable& table) {
  double number = 0;
  return std::all_of(table.targets().begin(), table.targets().end(),
                     [&](const std::string& text) { return read_number(text, number); });
}

/// Of a target. "NA" and the like are missing beside numbers; beside texts, they are a class.
void check_targets(const CsvTable& table) {
  const auto is_number_or_missing = [](const std::string& text) {
    double number = 0;
    return read_number(text, number) || is_missing(text);
  };
  const bool has_numbers =
      std::all_of(table.targets().begin(), table.targets().end(), is_number_or_missing);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& text = table.targets()[row];
    if (has_numbers ? is_missing(text) : text.empty())
      fail(ErrorKind::data, "csv: {}: the target is missing{}; fill it in or remove the line",
           table.place_of_target(row),
           text.empty() ? "" : fmt::format(" (\"{}\")", printable(text)));
  }
}

/// A number that is no class by itself, also beside texts such as "NA".
bool has_other_numbers(const CsvTable& table) {
  return std::any_of(table.targets().begin(), table.targets().end(), [](const std::string& text) {
    double number = 0;
    return read_number(text, number) && !is_class(number, most_automatic_classes);
  });
}

/// See TargetKind::automatic.
bool has_classes(const CsvTable& table, TargetKind kind) {
  check_targets(table);
  if (kind != TargetKind::automatic) return kind == TargetKind::classes;
  return !has_other_numbers(table);
}

std::vector<float> numbers_of(const CsvTable& table) {
  std::vector<double> values;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    double number = 0;
    const std::string& text = table.targets()[row];
    const bool is_number = read_number(text, number);
    if (!is_number || !std::isfinite(static_cast<float>(number)))
      fail(ErrorKind::data,
           "csv: {}: \"{}\" is not a finite number, which this loss needs as a target; correct it, "
           "or take --loss cross_entropy for classes",
           table.place_of_target(row), printable(text));
    values.push_back(number);
  }
  check_targets_as_floats(values, fmt::format("csv: {}: the target", printable(table.path())));
  return {values.begin(), values.end()};
}

/// Whole numbers from 0 on.
std::vector<std::int32_t> numbered_classes(const CsvTable& table, int classes) {
  const double limit = classes > 0 ? classes : most_classes;
  std::vector<std::int32_t> labels;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    double number = 0;
    const std::string& text = table.targets()[row];
    if (!read_number(text, number) || !is_class(number, limit))
      fail(
          ErrorKind::data,
          "csv: {}: \"{}\" is not a class; whole numbers from 0 to {} are required (--classes), or "
          "names; for numbers take another loss (--loss mse)",
          table.place_of_target(row), printable(text), limit - 1);
    labels.push_back(static_cast<std::int32_t>(number));
  }
  return labels;
}

/// Of one table, or of the training part's for a test part, or of a model.
struct Classes {
  ClassNames names;  ///< empty: classes are numbers
  int count = 0;
  const char* whose = "the training part";
};

std::vector<std::int32_t> named_classes(const CsvTable& table, const Classes& classes) {
  std::unordered_map<std::string_view, std::int32_t> places;
  for (std::size_t i = 0; i < classes.names.size(); ++i)
    places.emplace(classes.names[i], static_cast<std::int32_t>(i));
  std::vector<std::int32_t> labels;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& text = table.targets()[row];
    const auto place = places.find(text);
    if (place == places.end())
      fail(ErrorKind::data, "csv: {}: class \"{}\" is not among the {} classes of {}",
           table.place_of_target(row), printable(text), classes.count, classes.whose);
    labels.push_back(place->second);
  }
  return labels;
}

Classes classes_of(const CsvTable& table, const LoadOptions& options) {
  if (!options.class_names.empty())
    return {options.class_names, static_cast<int>(options.class_names.size()), "the model"};
  if (is_numeric(table)) {
    const std::vector<std::int32_t> labels = numbered_classes(table, options.classes);
    const int largest = *std::max_element(labels.begin(), labels.end());
    return {{}, options.classes > 0 ? options.classes : largest + 1};
  }
  const std::set<std::string> sorted(table.targets().begin(), table.targets().end());
  const auto found = static_cast<int>(sorted.size());
  require(options.classes == 0 || options.classes == found, ErrorKind::data,
          "csv: {}: the target has {} different values, --classes says {}; leave --classes out, or "
          "correct the values",
          printable(table.path()), found, options.classes);
  return {{sorted.begin(), sorted.end()}, found};
}

ChannelForm columns_of(const CsvTable& table) {
  return {table.width(), 1, [&table](std::size_t c) { return table.feature_name(c); }};
}

/// Those of the model to be used, if they are for as many columns.
std::vector<double> origins_for(const CsvTable& table, const LoadOptions& options) {
  if (options.purpose == Purpose::training) return origins_of(table.values(), columns_of(table));
  return options.origins.size() == table.width() ? options.origins : std::vector<double>();
}

Dataset dataset_of(const CsvTable& table, const std::optional<Classes>& classes,
                   const std::vector<double>& origins) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(table.width())};
  std::vector<float> values = less_origins(table.values(), origins, columns_of(table));
  if (table.targets().empty()) {
    return {table.path(), std::move(shape), std::move(values), no_targets(table.rows())};
  }
  if (!classes) {
    return {table.path(), std::move(shape), std::move(values), Targets{numbers_of(table), {}, 0}};
  }
  std::vector<std::int32_t> labels = classes->names.empty()
                                         ? numbered_classes(table, classes->count)
                                         : named_classes(table, *classes);
  return {table.path(), std::move(shape), std::move(values), std::move(labels), classes->count};
}

}  // namespace

Splits parse_csv(std::string_view text, const std::string& path, const LoadOptions& options) {
  const bool predicts = options.purpose == Purpose::prediction;
  require(predicts || !options.target.empty(), ErrorKind::argument,
          "csv: {}: which column is to be predicted? Name it (--target NAME)", printable(path));
  const CsvTable table(text, path, {options.target, options.features});
  std::optional<Classes> classes;
  if (!predicts && has_classes(table, options.targets)) classes = classes_of(table, options);
  const std::vector<double> origins = origins_for(table, options);
  const Dataset all = dataset_of(table, classes, origins);
  Splits splits;
  if (options.test_data.empty()) {
    splits = split_at_random(all, options);
  } else {
    const std::string test_text = read_text(options.test_data, "csv");
    const CsvTable test(test_text, options.test_data, {options.target, table.features()});
    splits.train = first_of(all, options.limit);
    splits.test = first_of(dataset_of(test, classes, origins), options.limit);
  }
  if (options.purpose == Purpose::training) splits.normalization = splits.train.measure();
  splits.normalization.origins = origins;
  splits.features = table.features();
  splits.target = options.target;
  if (classes) splits.class_names = classes->names;
  for (const std::string& column : table.unused())
    splits.notes.push_back("column not used: " + column);
  for (const std::string& column : table.row_counts())
    splits.notes.push_back(fmt::format(
        "column {}: it counts the rows; unless it is a feature, name the --features without it",
        column));
  const ChannelForm columns{
      table.width(), 1, [&](std::size_t c) { return "column " + printable(table.features()[c]); }};
  for (std::string& note : origin_notes(origins, columns)) splits.notes.push_back(std::move(note));
  return splits;
}

Splits read_csv(const std::filesystem::path& path, const LoadOptions& options) {
  return parse_csv(read_text(path, "csv"), path.string(), options);
}

}  // namespace fast::data
