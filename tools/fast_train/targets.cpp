#include "fast_train/targets.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast_train {

using namespace fast;

namespace {
constexpr double large = 10;
}

void check_targets(const data::Splits& data, nn::Loss loss, const std::string& from) {
  if (loss != nn::Loss::binary_cross_entropy) return;
  for (const data::Dataset* part : {&data.train, &data.test}) {
    const auto targets = part->targets();
    const auto bad =
        std::ranges::find_if(targets, [](float target) { return !(target >= 0 && target <= 1); });
    require(bad == targets.end(), ErrorKind::argument,
            "--loss binary_cross_entropy: --data {} has the target {}; numbers from 0 to 1 are "
            "required, or another loss (--loss mse)",
            from, bad == targets.end() ? 0 : *bad);
  }
}

std::vector<double> class_weights_of(const std::string& text, const data::Dataset& train) {
  std::vector<double> weights;
  if (text.empty()) return weights;
  const auto classes = static_cast<std::size_t>(train.classes());
  require(classes > 0, ErrorKind::argument,
          "--class-weights: the data has float targets and no classes; leave it out");
  if (text == "balanced") {
    std::vector<double> counts(classes);
    for (const std::int32_t label : train.labels()) ++counts[static_cast<std::size_t>(label)];
    const double share = static_cast<double>(train.labels().size()) / static_cast<double>(classes);
    for (const double count : counts) weights.push_back(count > 0 ? share / count : 1);
    return weights;
  }
  for (const std::string_view part : split_text(text, ',')) {
    double weight = 0;
    require(reads(part, weight) && std::isfinite(weight) && weight >= 0, ErrorKind::argument,
            "--class-weights: \"{}\"; balanced, or numbers from 0 on with commas between them are "
            "required",
            printable(part));
    weights.push_back(weight);
  }
  require(weights.size() == classes, ErrorKind::argument,
          "--class-weights: {} numbers, the data has {} classes; one a class is required",
          weights.size(), classes);
  require(std::ranges::max(weights) > 0, ErrorKind::argument,
          "--class-weights: all are 0; one of them must be larger");
  return weights;
}

std::string warning_of_targets(const data::Dataset& train, nn::Loss loss) {
  if (loss != nn::Loss::mse && loss != nn::Loss::huber) return {};
  double squares = 0;
  for (const float target : train.targets()) squares += double{target} * double{target};
  const auto count = static_cast<double>(train.targets().size());
  const double size = count > 0 ? std::sqrt(squares / count) : 0;
  if (!(size > large)) return {};
  return fmt::format(
      "the targets have a root mean square of {:.4g}, and {} takes them as they are; training may "
      "diverge or learn slowly: add --scale-targets, or take a smaller learning rate",
      size, nn::name(loss));
}

}  // namespace fast_train
