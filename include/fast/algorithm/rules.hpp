// The library's rules. Each rule's traits and lib/algorithm/rules/<name>.cpp have its source,
// memory and bytes. P is the model's size in bytes. One payload travels per neighbor and
// combination. Factories throw Error(argument) on options out of range.
#pragma once

#include <fast/algorithm/algorithm.hpp>

#include <map>
#include <optional>
#include <vector>

namespace fast::algorithm {

Rule none();  ///< x_i + δ_i: no exchange

struct AwcOptions {
  double consensus = 1;  ///< a, in (0, 1]
  double power = 0;      ///< p, 0 or more: a·(lr / largest lr so far)^p in place of a
};
/// x_i + a Σ_j W_ij (x_j - x_i) + δ_i: adapt-while-combine, the default. With a power above 0, give
/// the learning rate.
Rule awc(const AwcOptions& options = {});
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

struct EdmOptions {
  double momentum = 0.9;  ///< β
  bool strict = false;    ///< as that of d2
};
/// d2 with momentum, in place of the optimizer's: x⁺ = W (2x - x⁻ + s - s⁻) with s = β s⁻ + δ.
/// Plain SGD steps.
Rule edm(const EdmOptions& options = {});

struct GutOptions {
  double momentum = 0.9;  ///< β; 0: GUT without momentum, with which the paper has mu 0.9
  double mu = 0.06;       ///< μ, of the tracking; momentum + mu must be below 1
  bool strict = false;    ///< as that of d2
};
/// Global update tracking: d2 whose correction decays by μ, and momentum from the movement of the
/// averaged weights. With momentum it takes plain SGD steps.
Rule gut(const GutOptions& options = {});

struct QuasiGlobalMomentumOptions {
  double momentum = 0.9;  ///< β, of the local step
  double mu = 0.9;        ///< μ, of the buffer that follows the averaged movement
};
/// Momentum from the movement of the averaged weights, in place of the optimizer's: take plain SGD
/// steps and give the learning rate.
Rule quasi_global_momentum(const QuasiGlobalMomentumOptions& options = {});

struct AveragedMomentumOptions {
  double momentum = 0.9;  ///< β
  /// The new momentum and weights are averaged: s ← W (β s + δ), x⁺ = W (x + β s + δ). Neighbors
  /// wait for the gradient. Workers stay nearer to each other. A learning rate is stable if it is
  /// stable without exchange.
  bool atc = false;
};
/// Neighbors average their momentum as they average the weights, before the step, in place of the
/// optimizer's: s ← β W s + δ, x⁺ = W x + s. It sends twice as much as awc. Plain SGD steps.
Rule averaged_momentum(const AveragedMomentumOptions& options = {});

struct DecentLamOptions {
  double momentum = 0.9;  ///< β
};
/// Momentum without its bias under disagreement, in place of the optimizer's: take plain SGD steps
/// and give the learning rate.
Rule decentlam(const DecentLamOptions& options = {});

struct RelaySumOptions {
  /// Most neighbors of a worker: 2, as of a chain, to max_payload_vectors. A slot has room for so
  /// many messages.
  std::int64_t degree = 2;
};
/// RelaySGD on a tree: each worker passes on to each neighbor what it got from the others, so that
/// all workers average all, some rounds late.
Rule relay_sum(const RelaySumOptions& options = {});

struct ChocoOptions {
  std::int64_t top_k = 0;       ///< entries sent a round; 0: by fraction
  double fraction = 0.01;       ///< of the parameters sent a round, when top_k is 0; 1: all of them
  double consensus_step = 0.1;  ///< α; what converges falls with `fraction`: 0.3 does not at 1 %
  /// Draws the entries: of each run of 1/fraction one, by the worker's WorkerOptions::codec.seed
  /// and the round. Values alone travel, as they are: they contract by 1 - fraction, a factor
  /// 1/fraction would not.
  bool random_k = false;
};
/// Sends Q(x½ - x̂), the rest being remembered (error feedback): the entries that changed most, a
/// random part of them, or all of them. The codec codes what is sent. Q has to contract: the mean
/// of ‖x - Q(x)‖² is at most (1-δ)‖x‖² with δ > 0, which unbiased codes reach by a factor 1/(1+τ).
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

struct A2cid2Options {
  std::optional<double> mixing_rate;  ///< η; empty: 1/(2 √(χ₁χ₂)) of the schedule
  std::optional<double> second_step;  ///< α̃; empty: √(χ₁/χ₂)/2 of the schedule
};
/// A²CiD²: pairwise with a second copy of the weights, which goes further towards the partner's.
/// The two mix in every round. On rings it agrees faster than pairwise, with base2 slower.
Rule a2cid2(const A2cid2Options& options = {});

struct DilocoOptions {
  std::int64_t period = 50;    ///< H, steps between two outer steps (of one fragment)
  double rate = 0.7;           ///< η, of the outer step
  double momentum = 0.9;       ///< β, of the outer step
  bool nesterov = true;        ///< φ moves by Δ + βm in place of m
  std::int64_t fragments = 1;  ///< F, which divides `period`: each H/F steps one part of the model
  std::int64_t delay = 0;      ///< τ, steps between taking Δ and the outer step; below period/F
  double blend = 0;            ///< α, share of the local weights that stays: in [0, 1)
  /// Sends θ - φ in place of θ, which codecs need. Workers must start equal: what their initial
  /// weights differ by stays to the end.
  bool changes = false;
  /// The part of the entries of θ - φ that is sent: the largest ones, at least one. The rest and
  /// what a codec has lost are added to the next changes, `momentum` times (SparseLoCo). 0: all.
  /// The outer step has no momentum.
  double fraction = 0;
};
/// Local steps, then an outer step of momentum SGD along the mean change of all workers that are
/// there. Needs the complete graph and staleness 0. The optimizer of the local steps is the
/// caller's.
Rule diloco(const DilocoOptions& options = {});

struct NolocoOptions {
  std::int64_t period = 50;  ///< H, steps between two outer steps
  double rate = 0.7;         ///< a, of the outer step
  double momentum = 0.5;     ///< β, of the outer step
  std::int64_t delay = 0;    ///< τ, steps between publishing and the outer step; below period
  double blend = 0;          ///< α, share of the local weights that stays: in [0, 1)
};
/// Local steps, then an outer step with one partner: needs a schedule of matchings, best
/// random_matchings. A worker without a partner makes its outer step alone.
Rule noloco(const NolocoOptions& options = {});

struct GaslocOptions {
  std::int64_t period = 50;   ///< H, steps between two outer steps
  double rate = 1;            ///< η, of the outer step
  double consensus_step = 1;  ///< α, of the average with neighbors: in (0, 1]
  double acceleration = 0;    ///< γ, of the movement since the exchange before
  std::int64_t delay = 0;     ///< τ, steps between publishing and the outer step; below period
  double blend = 0;           ///< share of the local weights that stays: in [0, 1)
  bool changes = false;       ///< sends differences to what neighbors hold, which codecs need
};
/// Local steps, then an outer step that is averaged with the neighbors. The option `changes` needs
/// staleness 0 and a static topology.
Rule gasloc(const GaslocOptions& options = {});

struct AwcGaslocOptions {
  double rate = 1;            ///< η, of the outer step
  double consensus_step = 1;  ///< α, of the average between sites: in (0, 1]
  double acceleration = 0;    ///< γ, of the movement since the exchange before
};
/// awc within sites in every round, and the outer step of gasloc between sites. Needs a topology of
/// sites, which says in which rounds these exchange.
Rule awc_gasloc(const AwcGaslocOptions& options = {});

struct SpartaOptions {
  double fraction = 0.005;  ///< p, of the entries sent a step
  std::int64_t seed = 1;    ///< of the entries chosen, equal on all workers
};
/// atc on a random part of the entries, another in each step.
Rule sparta(const SpartaOptions& options = {});

/// x_i + δ_i + Σ_j δ_j over the neighbors: for comparison only, as nothing contracts x_i - x_j.
Rule gradient_exchange();

/// A rule's options by name: {"period", "4"}.
using Parameters = std::map<std::string, std::string, std::less<>>;

/// Reads texts such as "period=4". Throws Error(argument) on one without '=' and on a key given
/// twice.
Parameters parameters_from(const std::vector<std::string>& assignments);

/// Names of all rules, in the order of docs/reference/algorithms.md.
std::vector<std::string_view> names();
/// A rule by its name. Throws Error(argument) that lists the names, or the rule's options when one
/// is unknown or its value is no good.
Rule by_name(std::string_view name, const Parameters& parameters = {});

}  // namespace fast::algorithm
