#include "cli/data_options.hpp"

#include <fast/core/error.hpp>

#include "core/split_text.hpp"

namespace tools {

using namespace fast::options;
using fast::data::TargetKind;

namespace {

Value<TargetKind> target_kind() {
  return choice<TargetKind>({{"auto", TargetKind::automatic},
                             {"classes", TargetKind::classes},
                             {"numbers", TargetKind::numbers}});
}

/// No name follows the last comma of a list that ends with one.
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string_view> parts = fast::split_text(list, ',');
  if (parts.back().empty()) parts.pop_back();
  return {parts.begin(), parts.end()};
}

fast::options::Value<fast::data::ImageSize> image_size() {
  using fast::data::ImageSize;
  const Value<ImageSize> size{
      .required = "ROWSxCOLUMNS, each from 1 to 16384",
      .parse =
          [](std::string_view text, ImageSize& into) {
            try {
              into = fast::data::image_size_from(text);
              return Fit::good;
            } catch (const fast::Error&) {
              return Fit::unreadable;
            }
          },
      .format =
          [](const ImageSize& size) { return fmt::format("{}x{}", size.rows, size.columns); }};
  return or_word(size, "model", size_of_model);
}

}  // namespace

void add_rows(OptionTable& table, DataOptions& o) {
  table
      .add("target", o.target, text(),
           "what is to be predicted: a column of FILE.csv, an array of FILE.npz, a file beside "
           "FILE.npy, a name in KEY.json of tar shards [label]")
      .agreed();
  table
      .add("features", o.features, text(),
           "columns of FILE.csv, with commas between them [all others that are numbers], or an "
           "array of FILE.npz")
      .agreed();
  table
      .add("target_type", o.target_type, target_kind(),
           "what the target is: classes, numbers, or auto: numbers if one of them is no whole "
           "number from 0 to 999, else classes")
      .agreed();
  table
      .add("classes", o.classes, number<int>(zero_or_more()),
           "number of classes; 0: as many as the data shows")
      .agreed();
  table
      .add("test_data", o.test_data, text(),
           "the test part: a CSV file with the same columns, or the pattern of its shards; with a "
           "stream, a data set whose test part is taken")
      .agreed();
  table
      .add("test_share", o.test_share, fast::options::optional(number<double>(fraction())),
           "share of a CSV or NumPy file that is held out as test part, chosen at random [0.2]")
      .agreed();
  table
      .add("split_seed", o.split_seed, number<std::uint64_t>(any()),
           "seed of the choice of --test-share")
      .agreed();
  table
      .add("train_split", o.train_split, text(),
           "folder of images, or begin of the shards' names, that is the training part [train or "
           "training]")
      .agreed();
  table
      .add("test_split", o.test_split, text(),
           "the same of the test part [test, or else val, valid or validation]")
      .agreed();
  table
      .add("stream", o.stream,
           "decode images of folders when they are needed, instead of holding them in memory")
      .agreed();
  table
      .add("resize", o.resize, fast::options::optional(image_size()),
           "size that all images get, by bilinear interpolation: ROWSxCOLUMNS, or model: the size "
           "that the model of this name was made for, or that its file gives")
      .agreed();
}

fast::data::LoadOptions load_options(const DataOptions& o, std::size_t limit,
                                     const std::optional<fast::data::ImageSize>& model) {
  fast::data::LoadOptions load;
  load.limit = limit;
  load.classes = o.classes;
  load.targets = o.target_type;
  load.target = o.target;
  load.features = names_in(o.features);
  load.test_data = o.test_data;
  load.test_share = o.test_share;
  load.split_seed = o.split_seed;
  load.train_split = o.train_split;
  load.test_split = o.test_split;
  load.stream = o.stream;
  load.resize = o.resize;
  if (o.resize == size_of_model) {
    fast::require(model.has_value(), fast::ErrorKind::argument,
                  "--resize model: there is no model here; give a size, as --resize 224x224");
    load.resize = model;
  }
  return load;
}

std::string text_of(const DataOptions& options) {
  DataOptions copy;
  OptionTable table;
  add_rows(table, copy);
  copy = options;
  return table.agreement();
}

}  // namespace tools
