#include "fast_train/targets.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>

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

std::string warning_of_targets(const data::Dataset& train, nn::Loss loss) {
  if (loss != nn::Loss::mse && loss != nn::Loss::huber) return {};
  double squares = 0;
  for (const float target : train.targets()) squares += double{target} * double{target};
  const auto count = static_cast<double>(train.targets().size());
  const double size = count > 0 ? std::sqrt(squares / count) : 0;
  if (!(size > large)) return {};
  return fmt::format(
      "the targets have a root mean square of {:.4g}, and {} does not scale them; training may "
      "diverge or learn slowly: divide the targets by {:g}, or take a smaller learning rate",
      size, nn::name(loss), std::pow(10, std::round(std::log10(size))));
}

}  // namespace fast_train
