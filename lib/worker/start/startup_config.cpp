#include "worker/start/startup_config.hpp"

#include <fast/core/error.hpp>
#include <optional>
#include <utility>

#include "combine/accelerator.hpp"
#include "worker/start/frozen.hpp"
#include "worker/start/link_builder.hpp"
#include "worker/start/startup.hpp"

namespace fast::worker {
namespace {

/// Of the tensors that take part. Throws if they or the options do not fit their device.
ParameterLayout layout_of(std::vector<TensorView> parameters, const WorkerOptions& options) {
  const Device device = options.accelerator ? options.accelerator->device() : Device{};
  ParameterLayout layout(participating(std::move(parameters), options), device);
  if (options.accelerator) check_for_device(layout, options);
  return layout;
}

/// The part of each rank alone. Returns what the user should know.
std::string check_own_part(const Group& group, std::optional<StartupConfig>& agreed,
                           const TopologyRule& rule, std::vector<TensorView> parameters,
                           WorkerOptions options) {
  check_options(options, options.algorithm.traits());
  check_for_spares(group, options);
  TopologyConfig wiring{rule, options.weights, options.lazy_weights};
  ResolvedTopology wired = wiring.of(group.size(), options);
  options.weights = wired.weights.rule;
  options.lazy_weights = wired.weights.lazy;
  wired.check_row(group.rank() < group.size() ? group.rank() : 0);
  std::vector<TensorView> unexchanged = left_out(parameters, options);
  ParameterLayout layout = layout_of(std::move(parameters), options);
  check_frozen(options, layout);
  agreed.emplace(StartupConfig{std::move(options), std::move(wiring), std::move(layout),
                               std::move(wired.schedule), std::move(unexchanged)});
  return wired.weights.notice;
}

}  // namespace

StartupConfig agree_on_start(const Group& group, const TopologyRule& rule,
                             std::vector<TensorView> parameters, WorkerOptions options) {
  const Deadline deadline(options.deadline);
  const Group everyone = group.everyone();
  std::optional<StartupConfig> agreed;
  std::string notice;
  agree(everyone, deadline, "Worker: starting up", [&] {
    notice = check_own_part(group, agreed, rule, std::move(parameters), std::move(options));
  });
  const WorkerOptions& checked = agreed->options;
  require_agreement(
      everyone, fingerprint(agreed->layout, checked.algorithm.traits(), agreed->schedule, checked),
      deadline);
  compare_unexchanged(everyone, checked, agreed->unexchanged);
  if (!notice.empty() && group.rank() == 0 && checked.log) checked.log(LogLevel::warning, notice);
  return std::move(*agreed);
}

}  // namespace fast::worker
