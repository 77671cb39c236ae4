#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>

#include "core/closest.hpp"
#include "core/text.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// "mlp:A-B-...": the widths of all layers.
std::vector<std::int64_t> widths_of(const std::string& name, std::int64_t inputs,
                                    std::int64_t outputs) {
  std::vector<std::int64_t> widths{inputs};
  for (const std::string_view text : split_text(std::string_view(name).substr(4), '-')) {
    std::int64_t width = 0;
    require(reads(text, width) && width > 0, ErrorKind::argument,
            "--model: \"{}\"; widths of hidden layers are required (mlp:512-256)", name);
    widths.push_back(width);
  }
  widths.push_back(outputs);
  return widths;
}

std::int64_t hidden_of(const std::string& name) {
  if (name == "lstm") return 64;
  std::int64_t hidden = 0;
  require(reads(std::string_view(name).substr(5), hidden) && hidden > 0, ErrorKind::argument,
          "--model: \"{}\"; a number of hidden units is required (lstm:128)", name);
  return hidden;
}

/// Samples that are no images, and those of other channels, get the usual shape.
Shape image_of(const Shape& sample, const Shape& usual, bool any_channels, std::int64_t smallest) {
  Shape image = sample;
  if (image.size() == 2) image.insert(image.begin(), 1);
  const bool fits = image.size() == 3 && (any_channels || image[0] == usual[0]) &&
                    image[1] >= smallest && image[2] >= smallest;
  return fits ? image : usual;
}

/// An image of one channel is a sequence of its rows.
Shape sequence_of(const Shape& sample) {
  if (sample.size() == 2) return sample;
  if (sample.size() == 3 && sample[0] == 1) return {sample[1], sample[2]};
  return {28, 28};
}

std::int64_t inputs_of(const Shape& sample) { return sample.empty() ? 784 : elements_of(sample); }

}  // namespace

ModelSpec model_by_name(const std::string& name, std::int64_t outputs, const Shape& sample,
                        bool per_step) {
  if (name == "lenet") return lenet5(outputs, image_of(sample, {1, 28, 28}, true, 12));
  if (name == "mlp") return mlp({inputs_of(sample), 256, outputs});
  if (name == "resnet20") return resnet20(outputs, image_of(sample, {3, 32, 32}, true, 1));
  if (name == "resnet50") return resnet50(outputs, image_of(sample, {3, 224, 224}, false, 32));
  if (name == "lstm" || name.starts_with("lstm:"))
    return lstm(hidden_of(name), outputs, sequence_of(sample), per_step);
  if (name.starts_with("mlp:")) return mlp(widths_of(name, inputs_of(sample), outputs));
  fail(ErrorKind::argument,
       "--model: \"{}\" is unknown; choose lenet, mlp, mlp:A-B-..., lstm, lstm:HIDDEN, "
       "resnet20 or resnet50, or give a file of layers (FILE.toml){}",
       name, did_you_mean(name, {"lenet", "mlp", "lstm", "resnet20", "resnet50"}));
}

}  // namespace fast::nn
