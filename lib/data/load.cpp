#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/data/cifar.hpp>
#include <fast/data/idx.hpp>
#include <fast/data/image_folder.hpp>
#include <fast/data/load.hpp>

namespace fast::data {
namespace {
namespace fs = std::filesystem;

struct Known {
  std::string_view name;
  std::string_view package;
  int classes;
  float mean;
  float stddev;
};
constexpr Known known[] = {{"fashion-mnist", "dataset-fashion-mnist", 10, 0.2860F, 0.3530F}};

constexpr int cifar_batches = 5;

bool present(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

void require_readable(const fs::path& directory) {
  const std::string problem = why_unreadable_directory(directory);
  require(problem.empty(), ErrorKind::data,
          "data: {} cannot be read: {}; give a directory that this user can read",
          directory.string(), problem);
}

fs::path find_file(const fs::path& directory, const std::string& file) {
  for (const char* suffix : {"", ".gz"}) {
    fs::path path = directory / (file + suffix);
    if (is_there(path)) return path;
  }
  fail(
      ErrorKind::data,
      "data: {} has no {} and no {}.gz; wanted are {{train,t10k}}-images-idx3-ubyte and "
      "{{train,t10k}}-labels-idx1-ubyte, plain or .gz, or data_batch_1.bin, or train/<class>/*.png",
      directory.string(), file, file);
}

Dataset part(const fs::path& directory, const std::string& name, const LoadOptions& options) {
  return read_idx(find_file(directory, name + "-images-idx3-ubyte"),
                  find_file(directory, name + "-labels-idx1-ubyte"), options.classes,
                  options.limit);
}

std::vector<fs::path> batches_in(const fs::path& directory) {
  std::vector<fs::path> batches;
  for (int i = 1; i <= cifar_batches; ++i)
    batches.push_back(directory / fmt::format("data_batch_{}.bin", i));
  return batches;
}

/// Some of CIFAR-10's files are there.
bool is_cifar(const fs::path& directory) {
  const std::vector<fs::path> batches = batches_in(directory);
  return std::any_of(batches.begin(), batches.end(), is_there) ||
         is_there(directory / "test_batch.bin");
}

Splits load_cifar(const fs::path& directory, const LoadOptions& options) {
  return {read_cifar10(batches_in(directory), options.limit),
          read_cifar10({directory / "test_batch.bin"}, options.limit),
          {}};
}

Splits load_images(const fs::path& directory, const LoadOptions& options) {
  const std::vector<std::string> classes = class_folders(directory / "train");
  for (const std::string& name : class_folders(directory / "test")) {
    require(std::binary_search(classes.begin(), classes.end(), name), ErrorKind::data,
            "data: {} has a class \"{}\" in test that train lacks; classes must be the same",
            directory.string(), name);
  }
  return {read_image_folder(directory / "train", classes, options.limit),
          read_image_folder(directory / "test", classes, options.limit),
          {}};
}

Splits load_layout(const fs::path& directory, const LoadOptions& options) {
  for (const fs::path& place : {directory, directory / "cifar-10-batches-bin"}) {
    if (present(place)) require_readable(place);
    if (is_cifar(place)) return load_cifar(place, options);
  }
  if (present(directory / "train")) return load_images(directory, options);
  return {part(directory, "train", options), part(directory, "t10k", options), {}};
}

Splits load_directory(const fs::path& directory, const LoadOptions& options) {
  Splits splits = load_layout(directory, options);
  require(splits.train.sample_shape() == splits.test.sample_shape(), ErrorKind::data,
          "data: {}: training samples are {}, test samples {}; they must be alike",
          directory.string(), fmt::join(splits.train.sample_shape(), "x"),
          fmt::join(splits.test.sample_shape(), "x"));
  return splits;
}

}  // namespace

std::vector<std::string_view> dataset_names() {
  std::vector<std::string_view> names;
  for (const Known& each : known) names.push_back(each.name);
  return names;
}

Splits load(const std::string& name_or_path, const LoadOptions& options) {
  for (const Known& each : known) {
    if (each.name != name_or_path) continue;
    const fs::path directory = options.system_root / each.name;
    require(present(directory), ErrorKind::data,
            "data: {} is not installed ({} is missing); install the package {} (apt-get install "
            "{}) or give a directory",
            each.name, directory.string(), each.package, each.package);
    LoadOptions own = options;
    own.classes = each.classes;
    Splits splits = load_directory(directory, own);
    splits.normalization = {{each.mean}, {each.stddev}};
    return splits;
  }
  require(present(name_or_path), ErrorKind::argument,
          "data: \"{}\" is neither a data set nor a directory ({}); known are {}, or the path of a "
          "directory with four IDX files, CIFAR-10's binary files or folders of images",
          name_or_path, why_unreadable_directory(name_or_path), fmt::join(dataset_names(), ", "));
  Splits splits = load_directory(name_or_path, options);
  splits.normalization = splits.train.measure();
  return splits;
}

}  // namespace fast::data
