#include "algorithm/rules/gradient_correction.hpp"

#include <fmt/core.h>

#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {

RuleTraits GradientExchange::traits() {
  return {.name = "gradient_exchange",
          .summary = "x_i + δ_i + Σ_j δ_j over the neighbors; historical, for comparison",
          .source = "FAST, Viviani 2019",
          .messages = {.delivery = Delivery::every, .weights_apart = true, .own = Own::message},
          .timing = {.publish_point = PublishPoint::after_step,
                     .why_synchronous = "every step must be added exactly once"},
          .topology = {.mixing = MixingRequirement::unit},
          .memory = {.vectors = 1}};
}

Rule gradient_exchange() { return elementwise(GradientExchange{}); }

const RuleEntry entries::gradient_exchange{
    [](ParameterReader&) { return algorithm::gradient_exchange(); }};

namespace {
constexpr double least_given = 1e-9;  ///< above rounding
}

RuleTraits GradientTracking::traits() {
  return {.name = "gradient_tracking",
          .summary = "y ← W y + δ - δ⁻, x ← W x + y: y tracks the workers' mean step",
          .source = "DIGing, Nedić et al. 2017, arXiv 1607.03218, algorithm 1",
          .messages = {.vectors = 2, .delivery = Delivery::summed, .summed_from = 1},
          .timing = {.publish_point = PublishPoint::after_step,
                     .why_bounded = "asynchronous tracking is analyzed for bounded delays only"},
          .topology = {.passes_mass = true},
          .memory = {.vectors = 2, .remembers_neighbors = true},
          .step = {.stable_rates =
                       "gradient_tracking adds the step after the average (DIGing, x ← W x + y): "
                       "it is stable "
                       "for learning rate × curvature up to 1/2, on directed graphs far less"}};
}

void GradientTracking::begin_combine(const RoundInfo& info, std::span<const double>,
                                     std::span<const double>) {
  was_alone_ = is_alone_ != 0;
  if (info.restarts) return;
  if (info.neighbor_weight > 0) {
    given_ = 0;
  } else if (info.self_weight < 1 - least_given) {
    ++given_;
  }
  is_alone_ = given_ > info.workers ? 1 : 0;
}

Rule gradient_tracking() { return elementwise(GradientTracking{}); }

const RuleEntry entries::gradient_tracking{
    [](ParameterReader&) { return algorithm::gradient_tracking(); }};

RuleTraits D2::traits() const {
  return {
      .name = "d2",
      .summary = "W (2x - x⁻ + δ - δ⁻): no error from workers' data differing",
      .source = "D², Tang et al. 2018, arXiv 1803.07068, algorithm 1",
      .messages = {.own = Own::unused, .republishes = true},
      .timing = {.publish_point = PublishPoint::after_step,
                 .why_synchronous = "its correction cancels only terms of one and the same round"},
      .topology = {.mixing = MixingRequirement::positive,
                   .strict = options.strict,
                   .needs_static = true},
      .memory = {.vectors = 1, .remembers_neighbors = true},
      .parameters = fmt::format("strict={}", options.strict)};
}

Rule d2(const D2Options& options) { return elementwise(D2{options}); }

const RuleEntry entries::d2{[](ParameterReader& reader) {
  D2Options options;
  reader.read("strict", options.strict);
  return algorithm::d2(options);
}};

RuleTraits Edm::traits() const {
  RuleTraits traits = D2{{.strict = options.strict}}.traits();
  traits.name = "edm";
  traits.summary = "s ← β s + δ, x⁺ = W (2x - x⁻ + s - s⁻): d2 with momentum";
  traits.source = "EDM, Hu et al. 2025, arXiv 2501.19082";
  traits.memory.vectors = 3;
  traits.step.own_momentum = true;
  traits.parameters = fmt::format("momentum={} strict={}", options.momentum, options.strict);
  return traits;
}

Rule edm(const EdmOptions& options) {
  require_decay("edm", "momentum", options.momentum);
  return elementwise(Edm{options});
}

const RuleEntry entries::edm{[](ParameterReader& reader) {
  EdmOptions options;
  reader.read("momentum", options.momentum);
  reader.read("strict", options.strict);
  return algorithm::edm(options);
}};

namespace {

/// Without steps, X along an eigenvector of W is a sum of powers of the roots of
/// p(z) = z² - (λ(1 + μ) + β) z + λμ(1 - β) + β(1 + μ), λ being the eigenvalue. With β + μ < 1 and
/// λ < 1, both are within the unit circle where p(-1) > 0, which is above this λ.
double least_eigenvalue(double beta, double mu) {
  return -(1 + 2 * beta + mu * beta) / (1 + 2 * mu - mu * beta);
}

}  // namespace

RuleTraits Gut::traits() const {
  RuleTraits traits = D2{{.strict = options.strict}}.traits();
  traits.name = "gut";
  traits.summary = "W (x + μ(x - x⁻) + δ - μ δ⁻) + β(x - x⁻): d2 whose correction decays";
  traits.source = "GUT and QG-GUTm, Aketi et al. 2023, arXiv 2305.04792, as in the authors' code";
  traits.topology.eigenvalues_above = least_eigenvalue(options.momentum, options.mu);
  if (traits.topology.eigenvalues_above < -1)  // no weights have such eigenvalues
    traits.topology.mixing = MixingRequirement::symmetric;
  traits.memory.vectors = options.momentum == 0 ? 1 : 3;
  traits.memory.remembers_neighbors = false;  // what it remembers decays
  traits.step.own_momentum = options.momentum != 0;
  traits.parameters =
      fmt::format("momentum={} mu={} strict={}", options.momentum, options.mu, options.strict);
  return traits;
}

Rule gut(const GutOptions& options) {
  require_decay("gut", "momentum", options.momentum);
  require_decay("gut", "mu", options.mu);
  require(options.momentum + options.mu < 1, ErrorKind::argument,
          "gut: momentum {} and mu {}; their sum must be below 1", options.momentum, options.mu);
  return elementwise(Gut{options});
}

const RuleEntry entries::gut{[](ParameterReader& reader) {
  GutOptions options;
  reader.read("momentum", options.momentum);
  reader.read("mu", options.mu);
  reader.read("strict", options.strict);
  return algorithm::gut(options);
}};

RuleTraits DecentLam::traits() const {
  return {.name = "decentlam",
          .summary = "z = x + δ, m ← β m + (x - W z)/γ, x⁺ = x - γ m",
          .source = "DecentLaM, Yuan et al. 2021, arXiv 2104.11981, algorithm 2",
          .messages = {.republishes = true},
          .timing = {.publish_point = PublishPoint::after_step},
          .topology = {.mixing = MixingRequirement::symmetric},
          .memory = {.vectors = 2},
          .step = {.needs_learning_rate = true, .own_momentum = true},
          .parameters = fmt::format("momentum={}", options.momentum)};
}

Rule decentlam(const DecentLamOptions& options) {
  require_decay("decentlam", "momentum", options.momentum);
  return elementwise(DecentLam{{}, options});
}

const RuleEntry entries::decentlam{[](ParameterReader& reader) {
  DecentLamOptions options;
  reader.read("momentum", options.momentum);
  return algorithm::decentlam(options);
}};

RuleTraits AveragedMomentum::traits() const {
  RuleTraits traits{
      .name = "averaged_momentum",
      .summary = "s ← β W s + δ, x⁺ = W x + s: neighbors average momentum as weights",
      .source = "DmSGD, Ying et al. 2021, arXiv 2110.13363, algorithm 1, with steps after averages",
      .messages = {.vectors = 2},
      .timing = {.publish_point = PublishPoint::before_step},
      .memory = {.vectors = 1},
      .step = {.own_momentum = true,
               .stable_rates = "averaged_momentum is stable for learning rate x curvature "
                               "below (1 + e)(1 + momentum x e), where e is the smallest "
                               "eigenvalue of the weights; with atc=true for larger ones"},
      .parameters = fmt::format("momentum={} atc={}", options.momentum, options.atc)};
  if (options.atc) {
    traits.summary = "s ← W (β s + δ), x⁺ = W (x + β s + δ): neighbors average momentum as weights";
    traits.source = "DmSGD, Ying et al. 2021, arXiv 2110.13363, algorithm 1, averaging new weights";
    traits.messages.republishes = true;
    traits.timing.publish_point = PublishPoint::after_step;
    traits.memory.vectors = 2;
    traits.step.stable_rates = {};
  }
  return traits;
}

Rule averaged_momentum(const AveragedMomentumOptions& options) {
  require_decay("averaged_momentum", "momentum", options.momentum);
  return elementwise(AveragedMomentum{options});
}

const RuleEntry entries::averaged_momentum{[](ParameterReader& reader) {
  AveragedMomentumOptions options;
  reader.read("momentum", options.momentum);
  reader.read("atc", options.atc);
  return algorithm::averaged_momentum(options);
}};

RuleTraits QuasiGlobalMomentum::traits() const {
  return {.name = "quasi_global_momentum",
          .summary = "x½ = x - γ(β m + g), x⁺ = W x½, m ← μ m + (1-μ)(x - x⁺)/γ",
          .source = "QG-DSGDm, Lin et al. 2021, arXiv 2102.04761, algorithm 1",
          .messages = {.republishes = true},
          .timing = {.publish_point = PublishPoint::after_step},
          .memory = {.vectors = 2},
          .step = {.needs_learning_rate = true, .own_momentum = true},
          .parameters = fmt::format("momentum={} mu={}", options.momentum, options.mu)};
}

Rule quasi_global_momentum(const QuasiGlobalMomentumOptions& options) {
  require_decay("quasi_global_momentum", "momentum", options.momentum);
  require_decay("quasi_global_momentum", "mu", options.mu);
  return elementwise(QuasiGlobalMomentum{options});
}

const RuleEntry entries::quasi_global_momentum{[](ParameterReader& reader) {
  QuasiGlobalMomentumOptions options;
  reader.read("momentum", options.momentum);
  reader.read("mu", options.mu);
  return algorithm::quasi_global_momentum(options);
}};

}  // namespace fast::algorithm
