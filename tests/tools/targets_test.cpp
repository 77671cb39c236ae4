#include "fast_train/targets.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"

using namespace fast;
using nn::Loss;

namespace {

/// Two samples, whose targets have the root mean square `size`.
data::Dataset with_targets(float size) {
  return {
      "t", {1}, std::vector<float>{1, 2}, data::Targets{std::vector<float>{size, -size}, {}, 0}};
}

data::Dataset with_target(float target) {
  return {"t", {1}, std::vector<float>{1, 2}, data::Targets{std::vector<float>{1, target}, {}, 0}};
}

}  // namespace

TEST_CASE("binary cross-entropy takes targets from 0 to 1") {
  const auto check = [](float train, float test, Loss loss) {
    fast_train::check_targets({with_target(train), with_target(test), {}}, loss, "p.csv");
  };
  for (const float good : {0.0F, 0.5F, 1.0F}) check(good, good, Loss::binary_cross_entropy);
  check(-3, 7, Loss::mse);
  for (const float bad : {-0.25F, 1.5F}) {
    const std::string message = fmt::format("--data p.csv has the target {};", bad);
    CHECK_THROWS_WITH(check(bad, 0, Loss::binary_cross_entropy), ContainsSubstring(message));
    CHECK_THROWS_WITH(check(0, bad, Loss::binary_cross_entropy), ContainsSubstring(message));
  }
}

TEST_CASE("targets of a size that the usual learning rates do not fit give a warning") {
  const std::string warning = fast_train::warning_of_targets(with_targets(250'000), Loss::mse);
  CHECK_THAT(warning, ContainsSubstring("root mean square of 2.5e+05") &&
                          ContainsSubstring("add --scale-targets"));
  CHECK_FALSE(fast_train::warning_of_targets(with_targets(11), Loss::huber).empty());
}

TEST_CASE("other targets and losses give no warning") {
  CHECK(fast_train::warning_of_targets(with_targets(9), Loss::mse).empty());
  CHECK(fast_train::warning_of_targets(with_targets(1e6F), Loss::binary_cross_entropy).empty());
  const data::Dataset labels("t", {1}, std::vector<float>{1, 2}, std::vector<std::int32_t>{0, 900},
                             901);
  CHECK(fast_train::warning_of_targets(labels, Loss::cross_entropy).empty());
  CHECK(fast_train::warning_of_targets(labels, Loss::mse).empty());
}
