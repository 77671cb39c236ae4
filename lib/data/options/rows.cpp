#include "data/options/rows.hpp"

#include <fmt/ranges.h>

#include <fast/core/error.hpp>

#include "core/text.hpp"

namespace fast::data {
namespace {

options::Value<TargetKind> target_kind() {
  return options::choice<TargetKind>({{"auto", TargetKind::automatic},
                                      {"classes", TargetKind::classes},
                                      {"numbers", TargetKind::numbers}});
}

/// No name follows the last comma of a list that ends with one.
std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string_view> parts = split_text(list, ',');
  if (parts.back().empty()) parts.pop_back();
  return {parts.begin(), parts.end()};
}

options::Value<std::vector<std::string>> names_with_commas() {
  using Names = std::vector<std::string>;
  return {.required = "names, with commas between them",
          .parse =
              [](std::string_view text, Names& into) {
                into = names_in(text);
                return options::Fit::good;
              },
          .format = [](const Names& names) -> std::optional<std::string> {
            return fmt::format("{}", fmt::join(names, ","));
          }};
}

options::Fit read_size(std::string_view text, ImageSize& into) {
  try {
    into = image_size_from(text);
    return options::Fit::good;
  } catch (const Error&) {
    return options::Fit::unreadable;
  }
}

options::Value<ImageSize> image_size() {
  const options::Value<ImageSize> size{.required = "ROWSxCOLUMNS, each from 1 to 16384",
                                       .parse = read_size,
                                       .format = [](const ImageSize& size) {
                                         return fmt::format("{}x{}", size.rows, size.columns);
                                       }};
  return options::or_word(size, "model", size_of_model);
}

void add_target_rows(options::OptionTable& table, LoadOptions& load) {
  table
      .add("target", load.target, options::text(),
           "what is to be predicted: a column of FILE.csv, an array of FILE.npz, a file beside "
           "FILE.npy, a name in KEY.json of tar shards [label]")
      .agreed();
  table
      .add("features", load.features, names_with_commas(),
           "columns of FILE.csv, with commas between them [all others that can be], or an array of "
           "FILE.npz")
      .agreed();
  table
      .add("categories", load.categories, names_with_commas(),
           "columns of FILE.csv that are categories, though they hold numbers, or many texts")
      .agreed();
  table
      .add("target_type", load.targets, target_kind(),
           "what the target is: classes, numbers, or auto: numbers if one of them is no whole "
           "number from 0 to 999, else classes")
      .agreed();
  table
      .add("classes", load.classes, options::number<int>(options::zero_or_more()),
           "number of classes; 0: as many as the data shows")
      .agreed();
}

void add_split_rows(options::OptionTable& table, LoadOptions& load) {
  table
      .add("test_data", load.test_data, options::text(),
           "the test part: a CSV file with the same columns, or the pattern of its shards; with a "
           "stream, a data set whose test part is taken")
      .agreed();
  table
      .add("test_share", load.test_share,
           options::optional(options::number<double>(options::fraction())),
           "share of a CSV or NumPy file, or of folders of images without splits, that is held out "
           "as "
           "test part, chosen at random [0.2]")
      .agreed();
  table.add("stratify", load.stratify, "hold that share of each class out").agreed();
  table
      .add("split_seed", load.split_seed, options::number<std::uint64_t>(options::any()),
           "seed of the choice of --test-share")
      .agreed();
  table
      .add("train_split", load.train_split, options::text(),
           "folder of images, or begin of the shards' names, that is the training part [train or "
           "training]")
      .agreed();
  table
      .add("test_split", load.test_split, options::text(),
           "the same of the test part [test, or else val, valid or validation]")
      .agreed();
}

void add_image_rows(options::OptionTable& table, LoadOptions& load) {
  table
      .add("stream", load.stream,
           "decode images of folders when they are needed, instead of holding them in memory")
      .agreed();
  table
      .add("resize", load.resize, options::optional(image_size()),
           "size that all images get, by bilinear interpolation: ROWSxCOLUMNS, or model: the size "
           "that the model of this name was made for, or that its file gives")
      .agreed();
}

}  // namespace

void add_rows(options::OptionTable& table, LoadOptions& load) {
  add_target_rows(table, load);
  add_split_rows(table, load);
  add_image_rows(table, load);
}

void add_limit(options::OptionTable& table, LoadOptions& load) {
  table
      .add(
          "samples", load.limit, options::number<std::size_t>(options::any()),
          "take the first so many samples of the training part, and of the test part; 0: all. Of a "
          "stream: samples of an epoch")
      .agreed();
}

void resolve_size(LoadOptions& load, const std::optional<ImageSize>& model) {
  if (load.resize != size_of_model) return;
  require(model.has_value(), ErrorKind::argument,
          "--resize model: there is no model here; give a size, as --resize 224x224");
  load.resize = model;
}

std::string text_of(const LoadOptions& load) {
  LoadOptions copy;
  options::OptionTable table;
  add_rows(table, copy);
  copy = load;
  return table.agreement();
}

}  // namespace fast::data
