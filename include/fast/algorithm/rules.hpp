// The library's rules. Sources, memory and bytes stand in each rule's declaration and in
// lib/algorithm/<name>.cpp; P is the model's size in bytes, one payload travels per neighbor and
// combination. Factories throw Error(argument) on options out of range.
#pragma once

#include <fast/algorithm/algorithm.hpp>

#include <map>
#include <optional>
#include <vector>

namespace fast::algorithm {

Rule none();       ///< x_i + δ_i: no exchange
Rule awc();        ///< Σ_j W_ij x_j + δ_i: adapt-while-combine, the default
Rule atc();        ///< Σ_j W_ij (x_j + δ_j): adapt-then-combine
Rule allreduce();  ///< x_i + mean of δ: the baseline

struct LocalOptions {
  std::int64_t period = 4;  ///< steps between two combinations
};
/// atc in every period-th step.
Rule local(const LocalOptions& options = {});

struct GossipPgaOptions {
  std::int64_t period = 16;  ///< combinations between two exact averages
};
/// atc, and an exact global average in every period-th round. f32 and f64 models.
Rule gossip_pga(const GossipPgaOptions& options = {});

/// x⁺ = W x + y, where y tracks the workers' mean step. Plain SGD steps.
Rule gradient_tracking();

struct D2Options {
  bool strict = false;  ///< refuse weights that do not fit instead of making them lazy
};
/// x⁺ = W (2x - x⁻ + δ - δ⁻). Plain SGD steps.
Rule d2(const D2Options& options = {});

struct QuasiGlobalMomentumOptions {
  double momentum = 0.9;  ///< β, of the local step
  double mu = 0.9;        ///< μ, of the buffer that follows the averaged movement
};
/// Momentum from the movement of the averaged weights, in place of the optimizer's: take plain SGD
/// steps and give the learning rate.
Rule quasi_global_momentum(const QuasiGlobalMomentumOptions& options = {});

struct DecentLamOptions {
  double momentum = 0.9;  ///< β
};
/// Momentum without its bias under disagreement, in place of the optimizer's: take plain SGD steps
/// and give the learning rate.
Rule decentlam(const DecentLamOptions& options = {});

struct ChocoOptions {
  std::int64_t top_k = 0;       ///< entries sent a round; 0: by fraction
  double fraction = 0.01;       ///< of the parameters sent a round, when top_k is 0
  double consensus_step = 0.1;  ///< α; what converges falls with `fraction`: 0.3 does not at 1 %
};
/// Sends the entries that changed most, the rest being remembered (error feedback).
Rule choco(const ChocoOptions& options = {});

/// Stochastic gradient push, for directed graphs: column-stochastic weights, and a mass p beside
/// the weights that takes their bias out again.
Rule push_sum();

struct EventTriggeredOptions {
  /// Norm of the movement since the last message that makes a worker send; empty: adaptive.
  std::optional<double> threshold;
  double horizon = 3;  ///< adaptive: rounds between two messages of a worker that moves steadily
};
/// awc on the values last sent.
Rule event_triggered(const EventTriggeredOptions& options = {});

/// AD-PSGD on a schedule of matchings, in rounds: both of a pair take the average of the two, each
/// adds its own δ.
Rule pairwise();

/// x_i + δ_i + Σ_j δ_j over the neighbors: for comparison only, as nothing contracts x_i - x_j.
Rule gradient_exchange();

/// A rule's options by name: {"period", "4"}.
using Parameters = std::map<std::string, std::string, std::less<>>;

/// Of texts "period=4". Throws Error(argument) on one without '=' and on a key given twice.
Parameters parameters_from(const std::vector<std::string>& assignments);

/// Names of all rules, in the order of docs/reference/algorithms.md.
std::vector<std::string_view> names();
/// A rule by its name. Throws Error(argument) that lists the names, or the rule's options when one
/// is unknown or its value is no good.
Rule by_name(std::string_view name, const Parameters& parameters = {});

}  // namespace fast::algorithm
