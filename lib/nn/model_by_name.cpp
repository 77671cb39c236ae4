#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>

#include "core/closest.hpp"
#include "options/value.hpp"

namespace fast::nn {
namespace {

using options::reads;

/// "mlp:A-B-...": the hidden layers' widths.
std::vector<std::int64_t> widths_of(const std::string& name, std::int64_t classes) {
  std::vector<std::int64_t> widths{784};
  for (std::size_t begin = 4; begin <= name.size();) {
    const std::size_t end = std::min(name.find('-', begin), name.size());
    std::int64_t width = 0;
    require(reads(std::string_view(name).substr(begin, end - begin), width) && width > 0,
            ErrorKind::argument,
            "--model: \"{}\"; widths of hidden layers are required (mlp:512-256)", name);
    widths.push_back(width);
    begin = end + 1;
  }
  widths.push_back(classes);
  return widths;
}

std::int64_t hidden_of(const std::string& name) {
  std::int64_t hidden = 0;
  require(reads(std::string_view(name).substr(5), hidden) && hidden > 0, ErrorKind::argument,
          "--model: \"{}\"; a number of hidden units is required (lstm:128)", name);
  return hidden;
}

}  // namespace

ModelSpec model_by_name(const std::string& name, std::int64_t classes) {
  if (name == "lenet") return lenet5(classes);
  if (name == "mlp") return mlp({784, 256, classes});
  if (name == "resnet20") return resnet20(classes);
  if (name == "resnet50") return resnet50(classes);
  if (name == "lstm") return lstm(64, classes);
  if (name.starts_with("lstm:")) return lstm(hidden_of(name), classes);
  if (name.starts_with("mlp:")) return mlp(widths_of(name, classes));
  fail(ErrorKind::argument,
       "--model: \"{}\" is unknown; choose lenet, mlp, mlp:A-B-..., lstm, lstm:HIDDEN, "
       "resnet20 or resnet50{}",
       name, did_you_mean(name, {"lenet", "mlp", "lstm", "resnet20", "resnet50"}));
}

}  // namespace fast::nn
