#include "data/files/npy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <functional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"
#include "data/files/classes.hpp"
#include "data/files/contents.hpp"
#include "data/files/csv_table.hpp"
#include "data/files/split.hpp"
#include "data/files/zip.hpp"

namespace fast::data {
namespace {

/// 1, 3 or 4 channels: gray, RGB and RGBA.
bool has_channels_last(const std::vector<std::int64_t>& sample) {
  const bool are_channels =
      sample.size() == 3 && (sample[2] == 1 || sample[2] == 3 || sample[2] == 4);
  return are_channels && sample[0] > 4;
}

/// From rows × columns × channels to channels × rows × columns, each sample.
template <class T>
std::vector<T> channels_first(const std::vector<T>& values, std::size_t pixels,
                              std::size_t channels) {
  std::vector<T> turned(values.size());
  const std::size_t size = pixels * channels;
  for (std::size_t begin = 0; begin < values.size(); begin += size) {
    for (std::size_t i = 0; i < size; ++i)
      turned[begin + i % channels * pixels + i / channels] = values[begin + i];
  }
  return turned;
}

}  // namespace

ChannelForm channels_of(const std::vector<std::int64_t>& sample, const std::string& name) {
  ChannelForm form;
  form.channels = static_cast<std::size_t>(sample.empty() ? 1 : sample[0]);
  for (std::size_t side = 1; side < sample.size(); ++side)
    form.plane *= static_cast<std::size_t>(sample[side]);
  form.name = [name](std::size_t c) {
    return fmt::format("{}: column {}", printable(name), c + 1);
  };
  return form;
}

NpySamples npy_samples(NpyArray array, const std::string& name,
                       const std::optional<std::vector<double>>& origins) {
  require(!array.shape.empty() && array.shape[0] > 0, ErrorKind::data,
          "numpy: {}: shape ({}); samples need a first side that counts them", printable(name),
          fmt::join(array.shape, ", "));
  require(array.texts.empty(), ErrorKind::data,
          "numpy: {}: its elements are texts; samples are numbers, make them so with astype",
          printable(name));
  NpySamples samples;
  samples.count = static_cast<std::size_t>(array.shape[0]);
  samples.shape.assign(array.shape.begin() + 1, array.shape.end());
  if (samples.shape.empty()) samples.shape = {1};
  if (samples.shape.size() == 2) samples.shape = {1, samples.shape[0], samples.shape[1]};
  const bool turn = has_channels_last(samples.shape);
  const auto shape = samples.shape;
  if (turn) samples.shape = {shape[2], shape[0], shape[1]};
  const auto as_stored = [&](std::span<const double> values) -> Dataset::Values {
    const ChannelForm form = channels_of(samples.shape, "numpy: " + name);
    samples.origins = origins ? *origins : origins_of(values, form);
    if (samples.origins.size() != form.channels) samples.origins.clear();
    return less_origins(values, samples.origins, form);
  };
  const auto take = [&](auto& values) -> Dataset::Values {
    using T = typename std::decay_t<decltype(values)>::value_type;
    if (turn)
      values = channels_first(values, static_cast<std::size_t>(shape[0] * shape[1]),
                              static_cast<std::size_t>(shape[2]));
    if constexpr (std::is_same_v<T, std::int64_t>) {
      return as_stored(std::vector<double>(values.begin(), values.end()));
    } else if constexpr (std::is_same_v<T, double>) {
      return as_stored(values);
    } else {
      return std::move(values);
    }
  };
  samples.values = std::visit(take, array.values);
  if (const auto* floats = std::get_if<std::vector<float>>(&samples.values)) {
    const auto bad = std::find_if(floats->begin(), floats->end(),
                                  [](float value) { return !std::isfinite(value); });
    const std::size_t size = std::max<std::size_t>(1, floats->size() / samples.count);
    require(bad == floats->end(), ErrorKind::data,
            "numpy: {}: sample {} has a value that is not finite ({}); correct it or remove the "
            "sample",
            printable(name), static_cast<std::size_t>(bad - floats->begin()) / size,
            bad == floats->end() ? 0 : *bad);
  }
  return samples;
}

namespace {
namespace fs = std::filesystem;

/// Where arrays are found by their names.
struct Arrays {
  std::string where;
  std::vector<std::string> names;
  std::function<NpyArray(const std::string& name)> read;

  bool has(const std::string& name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  /// The name as the file writes it, in small or capital letters; empty if it has none.
  std::string spelled(const std::string& name) const {
    if (has(name)) return name;
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& each) {
      return in_small_letters(each) == in_small_letters(name);
    });
    return found == names.end() ? std::string() : *found;
  }
};

/// The names of four arrays; empty ones of the test part when there is none.
struct ArrayNames {
  std::string x, y, test_x, test_y;
};

const std::array<ArrayNames, 4>& known_names() {
  static const std::array<ArrayNames, 4> names{
      {{"x_train", "y_train", "x_test", "y_test"},
       {"train_x", "train_y", "test_x", "test_y"},
       {"train_images", "train_labels", "test_images", "test_labels"},
       {"x", "y", "", ""}}};
  return names;
}

ArrayNames names_in(const Arrays& arrays, const LoadOptions& options) {
  const bool predicts = options.purpose == Purpose::prediction;
  ArrayNames chosen;
  if (!options.features.empty() || !options.target.empty()) {
    require(
        options.features.size() == 1 && (predicts || !options.target.empty()), ErrorKind::argument,
        "numpy: {}: {} names of --features and the --target \"{}\"; name one array with samples "
        "and one with targets",
        arrays.where, options.features.size(), printable(options.target));
    chosen = {options.features[0], options.target, "", ""};
  } else {
    const auto found =
        std::find_if(known_names().begin(), known_names().end(),
                     [&](const ArrayNames& each) { return !arrays.spelled(each.x).empty(); });
    require(found != known_names().end(), ErrorKind::data,
            "numpy: {}: the arrays {} are there; required are x_train, y_train, x_test and y_test, "
            "or x and y, or --features NAME --target NAME",
            arrays.where, printable(fmt::format("{}", fmt::join(arrays.names, ", "))));
    chosen = *found;
    if (arrays.spelled(chosen.test_x).empty()) chosen.test_x = chosen.test_y = "";
    for (std::string* name : {&chosen.x, &chosen.y, &chosen.test_x, &chosen.test_y}) {
      if (const std::string spelled = arrays.spelled(*name); !spelled.empty()) *name = spelled;
    }
  }
  for (std::string* targets : {&chosen.y, &chosen.test_y}) {
    if (predicts && !arrays.has(*targets)) targets->clear();
  }
  for (const std::string& name : {chosen.x, chosen.y, chosen.test_x, chosen.test_y}) {
    const std::vector<std::string_view> known(arrays.names.begin(), arrays.names.end());
    require(name.empty() || arrays.has(name), ErrorKind::data,
            "numpy: {}: there is no array \"{}\"{}", arrays.where, printable(name),
            did_you_mean(name, known));
  }
  return chosen;
}

/// Whole numbers from 0 on.
std::vector<std::int32_t> classes_in(const NpyArray& array, const std::string& name, int& classes) {
  const double limit = classes > 0 ? classes : most_classes;
  std::vector<std::int32_t> labels;
  const auto read = [&](const auto& values) {
    for (const auto value : values) {
      const auto number = static_cast<double>(value);
      require(
          is_class(number, limit), ErrorKind::data,
          "numpy: {}: target {} is {}, which is not a class; whole numbers from 0 on are required "
          "(--classes), for numbers take another loss (--loss mse)",
          printable(name), labels.size(), value);
      labels.push_back(static_cast<std::int32_t>(number));
    }
  };
  std::visit(read, array.values);
  if (classes == 0 && !labels.empty())
    classes = *std::max_element(labels.begin(), labels.end()) + 1;
  return labels;
}

std::vector<std::int32_t> places_in(const std::vector<std::string>& texts, const std::string& name,
                                    const std::vector<std::string>& names, const char* whose) {
  const ClassPlaces places(names, whose);
  std::vector<std::int32_t> labels;
  for (const std::string& text : texts)
    labels.push_back(places.of(
        text, [&] { return fmt::format("numpy: {}: target {}", printable(name), labels.size()); }));
  return labels;
}

/// Texts as places in the names, which are those of the model, or of the training part, or else
/// become the different texts in the order of their bytes.
std::vector<std::int32_t> named_classes_in(const NpyArray& array, const std::string& name,
                                           std::vector<std::string>& names, int classes,
                                           const char* whose) {
  if (names.empty()) {
    const std::set<std::string> sorted(array.texts.begin(), array.texts.end());
    names.assign(sorted.begin(), sorted.end());
    for (const std::string& text : names)
      require(printable(text) == text, ErrorKind::data,
              "numpy: {}: the class \"{}\" is no text in UTF-8; save the targets as str "
              "(numpy.char.decode)",
              printable(name), printable(text));
    require(classes == 0 || std::cmp_equal(classes, names.size()), ErrorKind::data,
            "numpy: {}: the targets have {} different texts, --classes says {}; leave --classes "
            "out, or correct the texts",
            printable(name), names.size(), classes);
  }
  return places_in(array.texts, name, names, whose);
}

bool are_numbers(const std::vector<std::string>& names) {
  double number = 0;
  return std::ranges::all_of(names,
                             [&](const std::string& each) { return read_number(each, number); });
}

/// Of a model that knows names: whole numbers as it would write them.
std::vector<std::int32_t> numbers_as_names(const NpyArray& array, const std::string& name,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  std::visit(
      [&](const auto& values) {
        for (const auto value : values) texts.push_back(fmt::format("{}", value));
      },
      array.values);
  return places_in(texts, name, names, "the model");
}

/// See TargetKind::automatic.
bool has_classes(const NpyArray& array, std::size_t samples, TargetKind kind) {
  require(array.texts.empty() || kind != TargetKind::numbers, ErrorKind::data,
          "numpy: the targets are texts, which are no numbers; leave --target-type out, or take "
          "--loss cross_entropy");
  if (!array.texts.empty()) return true;
  if (kind != TargetKind::automatic) return kind == TargetKind::classes;
  const auto fits = [&](const auto& values) {
    return values.size() == samples && std::all_of(values.begin(), values.end(), [](auto value) {
             return is_class(static_cast<double>(value), most_automatic_classes);
           });
  };
  return std::visit(fits, array.values);
}

Targets npy_targets(const NpyArray& array, const std::string& name) {
  const auto doubles = std::visit(
      [](const auto& all) { return std::vector<double>(all.begin(), all.end()); }, array.values);
  std::vector<float> values(doubles.begin(), doubles.end());
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  require(bad == values.end(), ErrorKind::data,
          "numpy: {}: target {} is not finite; correct it or remove the sample", printable(name),
          bad - values.begin());
  check_targets_as_floats(doubles, "numpy: " + printable(name));
  std::vector<std::int64_t> shape(array.shape.begin() + 1, array.shape.end());
  return {std::move(values), std::move(shape), 0};
}

/// How values are read: as the options say, and then as the part before was read.
struct Reading {
  TargetKind kind;
  int classes;
  std::optional<std::vector<double>> origins = std::nullopt;
  std::vector<std::string> class_names = {};  ///< of targets that are texts
  std::optional<bool> are_texts = std::nullopt;
  bool by_model = false;  ///< the names are a model's: other targets are none
};

Dataset part_of_arrays(const Arrays& arrays, const std::string& x, const std::string& y,
                       Reading& reading) {
  auto& [kind, classes, origins, names, are_texts, by_model] = reading;
  const std::string place = fmt::format("{}: {}", arrays.where, y);
  NpySamples samples = npy_samples(arrays.read(x), fmt::format("{}: {}", arrays.where, x), origins);
  origins = std::move(samples.origins);
  if (y.empty())
    return {arrays.where, std::move(samples.shape), std::move(samples.values),
            no_targets(samples.count)};
  const NpyArray targets = arrays.read(y);
  require(!targets.shape.empty() && targets.shape[0] == static_cast<std::int64_t>(samples.count),
          ErrorKind::data,
          "numpy: {}: shape ({}) for {} samples in {}; targets need the same first side",
          printable(place), fmt::join(targets.shape, ", "), samples.count, printable(x));
  const bool is_text = !targets.texts.empty(), numbers_of_model = by_model && !is_text;
  const bool by_name = numbers_of_model && are_numbers(names);
  kind = numbers_of_model || has_classes(targets, samples.count, kind) ? TargetKind::classes
                                                                       : TargetKind::numbers;
  if (kind == TargetKind::numbers) {
    return {arrays.where, std::move(samples.shape), std::move(samples.values),
            npy_targets(targets, place)};
  }
  require(are_texts.value_or(is_text) == is_text, ErrorKind::data,
          "numpy: {}: its targets are {}, those of the training part or the model are {}",
          printable(place), is_text ? "texts" : "numbers", is_text ? "numbers" : "texts");
  are_texts = is_text;
  const char* whose = by_model ? "the model" : "the training part";
  if (numbers_of_model) classes = static_cast<int>(names.size());
  std::vector<std::int32_t> labels = is_text
                                         ? named_classes_in(targets, place, names, classes, whose)
                                     : by_name ? numbers_as_names(targets, place, names)
                                               : classes_in(targets, place, classes);
  if (is_text) classes = static_cast<int>(names.size());
  std::vector<std::int64_t> each(targets.shape.begin() + 1, targets.shape.end());
  if (labels.size() == samples.count) each.clear();  // a column is one label a sample
  return {arrays.where, std::move(samples.shape), std::move(samples.values),
          Targets{std::move(labels), std::move(each), classes}};
}

Splits splits_of(const Arrays& arrays, const LoadOptions& options) {
  const ArrayNames names = names_in(arrays, options);
  Reading reading{options.targets, options.classes};
  reading.class_names = options.class_names;
  const bool uses_model = options.purpose != Purpose::training;
  reading.by_model = uses_model && !options.class_names.empty();
  if (uses_model && options.class_names.empty()) reading.are_texts = false;  // it knows no texts
  if (options.purpose != Purpose::training) reading.origins = options.origins;
  const Dataset all = part_of_arrays(arrays, names.x, names.y, reading);
  Splits splits;
  if (names.test_x.empty()) {
    splits = split_at_random(all, options);
  } else {
    splits.train = first_of(all, options.limit);
    splits.test =
        first_of(part_of_arrays(arrays, names.test_x, names.test_y, reading), options.limit);
  }
  if (options.purpose == Purpose::training) splits.normalization = splits.train.measure();
  splits.normalization.origins = *reading.origins;
  splits.class_names = reading.class_names;
  for (std::string& note : origin_notes(*reading.origins, channels_of(all.sample_shape(), names.x)))
    splits.notes.push_back(std::move(note));
  if (const auto& shape = all.sample_shape(); shape.size() == 3)
    splits.notes.push_back(fmt::format("{}: a sample is {} channel{} of {} rows and {} columns",
                                       names.x, shape[0], shape[0] == 1 ? "" : "s", shape[1],
                                       shape[2]));
  return splits;
}

constexpr std::string_view npy_ending = ".npy";

/// The arrays of a directory, by the names of their files.
Arrays arrays_in(const fs::path& directory) {
  Arrays arrays;
  arrays.where = directory.string();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == npy_ending) arrays.names.push_back(entry.path().stem());
  }
  std::sort(arrays.names.begin(), arrays.names.end());
  arrays.read = [directory](const std::string& name) {
    const fs::path file = directory / (name + std::string(npy_ending));
    return parse_npy(read_text(file, "numpy"), file.string());
  };
  return arrays;
}

}  // namespace

Splits read_npz(const fs::path& path, const LoadOptions& options) {
  const std::string bytes = read_text(path, "npz");
  const ZipArchive archive(bytes, path.string());
  Arrays arrays;
  arrays.where = path.string();
  for (const std::string& member : archive.names()) {
    if (!member.ends_with(npy_ending)) continue;
    arrays.names.push_back(member.substr(0, member.size() - npy_ending.size()));
  }
  arrays.read = [&](const std::string& name) {
    return parse_npy(archive.read(name + std::string(npy_ending)),
                     fmt::format("{}: {}", path.string(), name));
  };
  return splits_of(arrays, options);
}

Splits read_npy_directory(const fs::path& directory, const LoadOptions& options) {
  return splits_of(arrays_in(directory), options);
}

Splits read_npy(const fs::path& path, const LoadOptions& options) {
  require(!options.target.empty() || options.purpose == Purpose::prediction, ErrorKind::argument,
          "numpy: {}: where are the targets? Name their file (--target y.npy)",
          printable(path.string()));
  LoadOptions two = options;
  two.features = {path.string()};
  Arrays arrays;
  arrays.where = path.string();
  arrays.names = {path.string(), options.target};
  arrays.read = [](const std::string& name) { return parse_npy(read_text(name, "numpy"), name); };
  return splits_of(arrays, two);
}

bool has_npy_files(const fs::path& directory) {
  const Arrays arrays = arrays_in(directory);
  return std::any_of(known_names().begin(), known_names().end(),
                     [&](const ArrayNames& each) { return !arrays.spelled(each.x).empty(); });
}

}  // namespace fast::data
