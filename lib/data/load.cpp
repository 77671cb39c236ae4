#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/idx.hpp>
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

bool present(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

fs::path find_file(const fs::path& directory, const std::string& file) {
  std::error_code error;
  for (const char* suffix : {"", ".gz"}) {
    fs::path path = directory / (file + suffix);
    if (fs::exists(path, error)) return path;
  }
  fail(ErrorKind::data,
       "data: {} has no {} and no {}.gz; wanted are {{train,t10k}}-images-idx3-ubyte and "
       "{{train,t10k}}-labels-idx1-ubyte, plain or .gz",
       directory.string(), file, file);
}

Dataset part(const fs::path& directory, const std::string& name, const LoadOptions& options) {
  const Dataset all = read_idx(find_file(directory, name + "-images-idx3-ubyte"),
                               find_file(directory, name + "-labels-idx1-ubyte"), options.classes);
  return options.limit == 0 ? all : all.slice(0, std::min(options.limit, all.size()));
}

Splits load_directory(const fs::path& directory, const LoadOptions& options) {
  Splits splits{part(directory, "train", options), part(directory, "t10k", options), {}};
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
          "data: \"{}\" is neither a data set nor a directory; known are {}, or the path of a "
          "directory with the four IDX files of such a data set",
          name_or_path, fmt::join(dataset_names(), ", "));
  Splits splits = load_directory(name_or_path, options);
  splits.normalization = splits.train.measure();
  return splits;
}

}  // namespace fast::data
