#include <bit>
#include <cmath>
#include <fast/mixing/check.hpp>
#include <fast/worker/closing.hpp>

namespace fast {
namespace {
constexpr double remaining = 0.05;  ///< of the disagreement
constexpr double tolerance = 1e-9;
}  // namespace

std::int64_t closing_rounds(const Schedule& schedule, const Spectrum& spectrum) {
  if (schedule.workers() == 1) return 0;
  const auto workers = static_cast<unsigned>(schedule.workers());
  if (std::isnan(spectrum.gap)) return 4 * std::bit_width(workers - 1);
  if (spectrum.gap < tolerance) return 0;
  if (spectrum.exact_after > 0) return spectrum.exact_after;
  const double rounds =
      spectrum.gap > 1 - tolerance
          ? 1
          : std::ceil(std::log(remaining) / std::log1p(-spectrum.gap) - tolerance);
  const std::int64_t period = std::max<std::int64_t>(1, schedule.period());
  const auto wanted =
      static_cast<std::int64_t>(std::min(rounds, static_cast<double>(most_closing_rounds)));
  return std::min((wanted + period - 1) / period * period, std::max(period, most_closing_rounds));
}

Worker closing_worker(const Group& group, const TopologyRule& rule, const Spectrum& spectrum,
                      std::vector<TensorView> parameters, WorkerOptions options) {
  options.algorithm = algorithm::awc();
  // Robust averages do not keep the mean anyway, and push-sum has none.
  if (!spectrum.doubly_stochastic && options.robust == Robust::none) {
    options.algorithm = algorithm::push_sum();
    const MixingCheck found =
        check_mixing(rule.make(group.size()), options.weights, options.lazy_weights);
    if (!found.columns) options.weights = WeightRule::uniform_columns;
  }
  options.codec = {};
  options.staleness = 0;
  options.mix_every = options.mix_times = 1;
  options.initial = Initial::as_is;
  options.on_round = nullptr;
  options.on_mean.call = nullptr;
  options.site = nullptr;  // other sites take no part
  // What takes no part in rounds was compared when training began.
  std::erase_if(parameters, [&](const TensorView& view) {
    return !is_floating(view.dtype) || (options.participates && !options.participates(view));
  });
  options.frozen.clear();
  return {group, rule, std::move(parameters), std::move(options)};
}

std::int64_t close_training(Worker& worker, std::int64_t rounds,
                            const std::function<bool()>& stop) {
  std::int64_t made = 0;
  for (; made < rounds && !(stop && stop()); ++made) worker.step([] {});
  worker.await_finish();
  return made;
}

Worker close_training(const Group& group, const TopologyRule& rule, const Spectrum& spectrum,
                      std::vector<TensorView> parameters, std::int64_t rounds,
                      WorkerOptions options) {
  Worker worker = closing_worker(group, rule, spectrum, std::move(parameters), std::move(options));
  close_training(worker, rounds);
  return worker;
}

}  // namespace fast
