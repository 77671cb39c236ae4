#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/formats.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <span>
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

/// All are 1 or -1, and one is -1.
bool has_signs(const CsvTable& table) {
  bool has_negative = false;
  for (const std::string& text : table.targets()) {
    double number = 0;
    if (!read_number(text, number) || std::abs(number) != 1) return false;
    has_negative = has_negative || number < 0;
  }
  return has_negative;
}

/// See TargetKind::automatic.
bool has_classes(const CsvTable& table, TargetKind kind) {
  check_targets(table);
  if (kind != TargetKind::automatic) return kind == TargetKind::classes;
  return !has_other_numbers(table) || has_signs(table);
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
  const ClassPlaces places(classes.names, classes.whose);
  std::vector<std::int32_t> labels;
  for (std::size_t row = 0; row < table.rows(); ++row)
    labels.push_back(places.of(table.targets()[row],
                               [&] { return fmt::format("csv: {}", table.place_of_target(row)); }));
  return labels;
}

Classes classes_of(const CsvTable& table, const LoadOptions& options) {
  if (!options.class_names.empty())
    return {options.class_names, static_cast<int>(options.class_names.size()), "the model"};
  if (has_signs(table) && options.classes <= 2) return {{"-1", "1"}, 2};
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

bool is_nan(float value) { return std::isnan(value); }

std::span<const float> floats_of(const Dataset& samples) {
  return std::get<std::span<const float>>(samples.values());
}

/// With a number for each missing one, by columns.
Dataset filled(const Dataset& samples, const std::vector<float>& means) {
  const std::span<const float> from = floats_of(samples);
  if (std::none_of(from.begin(), from.end(), is_nan)) return samples;
  std::vector<float> values(from.begin(), from.end());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (is_nan(values[i])) values[i] = means[i % means.size()];
  std::vector<std::size_t> all(samples.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return {samples.name(), samples.sample_shape(), std::move(values), chosen_targets(samples, all)};
}

/// Of each column, over what is not missing; 0 where all is.
std::vector<float> known_means(const Dataset& samples) {
  const std::size_t width = samples.sample_size();
  std::vector<double> sums(width);
  std::vector<std::size_t> counts(width);
  const std::span<const float> values = floats_of(samples);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_nan(values[i])) continue;
    sums[i % width] += values[i];
    ++counts[i % width];
  }
  std::vector<float> means;
  for (std::size_t k = 0; k < width; ++k)
    means.push_back(static_cast<float>(counts[k] == 0 ? 0 : sums[k] / double(counts[k])));
  return means;
}

/// The training part's means stand for missing numbers, in all parts and later for the model: those
/// that the normalization has, to the last bit. Of a model, they are given.
void fill(Splits& splits, const LoadOptions& options) {
  const bool trains = options.purpose == Purpose::training;
  if (trains) splits.normalization = filled(splits.train, known_means(splits.train)).measure();
  const std::vector<float> none{0};
  const std::vector<float>& given = options.means.empty() ? none : options.means;
  const std::vector<float>& means = trains ? splits.normalization.mean : given;
  splits.train = filled(splits.train, means);
  splits.test = filled(splits.test, means);
}

}  // namespace

Splits parse_csv(std::string_view text, const std::string& path, const LoadOptions& options) {
  const bool predicts = options.purpose == Purpose::prediction;
  require(predicts || !options.target.empty(), ErrorKind::argument,
          "csv: {}: which column is to be predicted? Name it (--target NAME)", printable(path));
  const bool trains = options.purpose == Purpose::training;
  const CsvTable table(
      text, path,
      {options.target, options.features, options.categories, !trains && !options.features.empty()});
  std::optional<Classes> classes;
  if (!predicts && has_classes(table, options.targets)) classes = classes_of(table, options);
  const std::vector<double> origins = origins_for(table, options);
  const Dataset all = dataset_of(table, classes, origins);
  Splits splits;
  if (options.test_data.empty()) {
    splits = split_at_random(all, options);
  } else {
    const std::string test_text = read_maybe_compressed(options.test_data, "csv");
    const CsvTable test(test_text, options.test_data,
                        {options.target, table.features(), {}, /*are_encoded=*/true});
    splits.train = first_of(all, options.limit);
    splits.test = first_of(dataset_of(test, classes, origins), options.limit);
    for (const std::string& note : test.notes()) splits.notes.push_back("--test-data: " + note);
  }
  fill(splits, options);
  splits.normalization.origins = origins;
  splits.features = table.features();
  splits.target = options.target;
  if (classes) splits.class_names = classes->names;
  const std::vector<std::string> notes = table.notes();
  splits.notes.insert(splits.notes.begin(), notes.begin(), notes.end());
  const ChannelForm columns{
      table.width(), 1, [&](std::size_t c) { return "column " + printable(table.features()[c]); }};
  for (std::string& note : origin_notes(origins, columns)) splits.notes.push_back(std::move(note));
  return splits;
}

Splits read_csv(const std::filesystem::path& path, const LoadOptions& options) {
  return parse_csv(read_maybe_compressed(path, "csv"), path.string(), options);
}

}  // namespace fast::data
