// What tensors on a device can be combined by, and what cannot.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>

#include "combine/element_work.hpp"
#include "worker/start/startup.hpp"

namespace fast::worker {
namespace {

std::vector<std::string_view> device_algorithms() {
  std::vector<std::string_view> found;
  for (const std::string_view name : algorithm::names()) {
    if (combine::device_rule(*algorithm::by_name(name).make())) found.push_back(name);
  }
  return found;
}

/// False for a rule of the caller's own.
bool runs_with_other_options(std::string_view name) {
  const auto known = algorithm::names();
  return std::find(known.begin(), known.end(), name) != known.end() &&
         combine::device_rule(*algorithm::by_name(name).make());
}

constexpr auto or_mirror = "or hand over a mirror of the tensors in host memory";

}  // namespace

void check_for_device(const ParameterLayout& layout, const WorkerOptions& options) {
  const std::string why_not = why_not_on_device(options);
  require(why_not.empty(), ErrorKind::argument, "Worker: {}", why_not);
  const bool exact = options.codec.kind == codec::Kind::identity;
  for (const TensorView& view : layout.views()) {
    const bool fits = view.dtype == DType::f32 ||
                      (view.dtype == DType::f64 && (exact || view.role == Role::buffer));
    require(fits, ErrorKind::argument,
            "Worker: {} is on a device, where f32 is averaged, and with codec identity f64; keep "
            "such weights, {}",
            describe(view), or_mirror);
  }
}

}  // namespace fast::worker

namespace fast {

std::string why_not_on_device(const WorkerOptions& options) {
  const algorithm::Rule& algorithm = options.algorithm;
  const std::string_view name = algorithm.traits().name;
  const auto rule = combine::device_rule(*algorithm.make());
  if (!rule) {
    const bool with_others = worker::runs_with_other_options(name);
    const std::string options = with_others ? " with " + algorithm.traits().parameters : "";
    return fmt::format("algorithm {}{} with tensors on a device; choose {}, {}", name, options,
                       with_others
                           ? "other options of the rule"
                           : fmt::format("one of {}", fmt::join(worker::device_algorithms(), ", ")),
                       worker::or_mirror);
  }
  if (worker::sends_sums(algorithm.traits(), options)) {
    return fmt::format(
        "algorithm {} with tensors on a device at staleness above 0; choose staleness 0, {}", name,
        worker::or_mirror);
  }
  const bool averages = std::holds_alternative<algorithm::Averaging>(*rule);
  const bool rounds = options.codec.kind == codec::Kind::bf16 && !options.codec.stochastic;
  if (options.codec.kind == codec::Kind::identity || (averages && rounds)) return {};
  return fmt::format(
      "codec {} with algorithm {} and tensors on a device; choose identity (with awc, atc and "
      "others that average plainly bf16, too), {}",
      codec::name(options.codec), name, worker::or_mirror);
}

}  // namespace fast
