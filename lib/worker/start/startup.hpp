// What workers must agree on before the first round.
#pragma once

#include <fast/worker/worker.hpp>
#include <string>

namespace fast::worker {

/// Everything that has to be equal, one "setting=value" a line.
std::string fingerprint(const ParameterLayout& layout, const algorithm::RuleTraits& algorithm,
                        const Schedule& schedule, const WorkerOptions& options);

/// Collective. Error(mismatch), the same on every worker, that names two workers and their first
/// difference.
void require_agreement(const Group& group, const std::string& fingerprint,
                       const Deadline& deadline);

/// The views that take part. Throws Error(argument) when none does.
std::vector<TensorView> participating(std::vector<TensorView> views, const WorkerOptions& options);

/// Throws Error(argument) on options that make no sense.
void check_options(const WorkerOptions& options, const algorithm::RuleTraits& algorithm);

/// Throws Error(argument) in one line that names what devices do not do.
void check_for_device(const ParameterLayout& layout, const WorkerOptions& options);

/// True if a device cannot code the messages of its model itself.
bool is_coded_on_host(const ParameterLayout& layout, const WorkerOptions& options);

/// Rounds from one that combines to the next: mix_every periods of the rule. It is at most 2^40, so
/// that sums and products with rounds stay in range: no run makes so many rounds, and the words in
/// which workers agree on rounds have 40 bits.
std::int64_t rounds_per_combination(const WorkerOptions& options);

/// True when messages are running sums (see algorithm::Delivery).
inline bool sends_sums(const algorithm::RuleTraits& algorithm, const WorkerOptions& options) {
  return algorithm.messages.delivery == algorithm::Delivery::summed && options.staleness > 0;
}

}  // namespace fast::worker
