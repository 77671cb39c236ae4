#include "algorithm/averaging.hpp"

#include <fast/core/error.hpp>

#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {

struct None : Averaging {
  static RuleTraits traits() {
    return {.name = "none",
            .summary = "x_i + δ_i: every worker trains alone",
            .source = "-",
            .topology = {.scope = Scope::nobody, .mixing = MixingRequirement::anything},
            .precision = {.why_exact = "it sends nothing"}};
  }
};

}  // namespace

Rule none() { return elementwise(None{}); }

const RuleEntry entries::none{[](ParameterReader&) { return algorithm::none(); }};

namespace {

/// Memory: none beyond the slots. Bytes: P a neighbor every `period` steps.
struct LocalSgd : Averaging {
  LocalOptions options;

  RuleTraits traits() const {
    return {.name = "local",
            .summary = "H own steps, then Σ_j W_ij (x_j + δ_j)",
            .source =
                "local SGD, Stich 2019, arXiv 1805.09767, algorithm 1; gossip in place of "
                "the average",
            .messages = {.own = Own::unused, .republishes = true},
            .timing = {.publish_point = PublishPoint::after_step, .combine_every = options.period},
            .parameters = fmt::format("period={}", options.period)};
  }
};

}  // namespace

Rule local(const LocalOptions& options) {
  require(options.period >= 1, ErrorKind::argument, "local: period {}; it must be 1 or more",
          options.period);
  return elementwise(LocalSgd{{}, options});
}

const RuleEntry entries::local{[](ParameterReader& reader) {
  LocalOptions options;
  reader.read("period", options.period);
  return algorithm::local(options);
}};

namespace {

/// The Worker hands the average of all workers' δ over as `pull`, and where this worker stood as
/// `own`.
struct AllReduce : WeightsPublished {
  static RuleTraits traits() {
    return {
        .name = "allreduce",
        .summary = "x_i + (1/N) Σ_j δ_j: the synchronous baseline; replicas start and stay equal",
        .source = "-",
        .topology = {.scope = Scope::everybody, .mixing = MixingRequirement::anything},
        .precision = {.why_exact = "replicas stay equal only as long as all add exactly the same"}};
  }
  template <class T>
  void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.current[e] = block.own[0][e] + block.pull[0][e];
    }
  }
};

}  // namespace

Rule allreduce() { return elementwise(AllReduce{}); }

const RuleEntry entries::allreduce{[](ParameterReader&) { return algorithm::allreduce(); }};

namespace {

struct AdaptThenCombine : Averaging {
  static RuleTraits traits() {
    return {.name = "atc",
            .summary = "Σ_j W_ij (x_j + δ_j): each steps, then all average",
            .source = "diffusion, Chen & Sayed 2012",
            .messages = {.own = Own::unused, .republishes = true},
            .timing = {.publish_point = PublishPoint::after_step}};
  }
};

}  // namespace

Rule atc() { return elementwise(AdaptThenCombine{}); }

const RuleEntry entries::atc{[](ParameterReader&) { return algorithm::atc(); }};

namespace {

RuleTraits traits_of_awc() {
  return {.name = "awc",
          .summary = "Σ_j W_ij x_j + δ_i: neighbors are read while gradients are computed",
          .source = "D-PSGD, Lian et al. 2017, arXiv 1705.09056, algorithm 1",
          .messages = {.own = Own::unused},
          .timing = {.publish_point = PublishPoint::before_step}};
}

struct AdaptWhileCombine : Averaging {
  static RuleTraits traits() {
    RuleTraits traits = traits_of_awc();
    traits.plain_average = true;
    return traits;
  }
};

}  // namespace

RuleTraits PartialAveraging::traits() const {
  RuleTraits traits = traits_of_awc();
  traits.source = "DSGD-AC, arXiv 2602.02899, with a = (learning rate / largest)^p";
  traits.step.needs_learning_rate = options.power > 0;
  traits.parameters = fmt::format("consensus={} power={}", options.consensus, options.power);
  return traits;
}

void PartialAveraging::begin_combine(const RoundInfo& info, std::span<const double>,
                                     std::span<const double>) {
  step = options.consensus;
  if (options.power == 0) return;
  largest_rate = std::max({largest_rate, info.learning_rate, info.largest_rate});
  step *= std::pow(info.learning_rate / largest_rate, options.power);
}

Rule awc(const AwcOptions& options) {
  require(options.consensus > 0 && options.consensus <= 1 && options.power >= 0,
          ErrorKind::argument,
          "awc: consensus {}, power {}; consensus must be above 0 and at most 1, power 0 or more",
          options.consensus, options.power);
  if (options.consensus == 1 && options.power == 0) return elementwise(AdaptWhileCombine{});
  return elementwise(PartialAveraging{{}, options});
}

const RuleEntry entries::awc{[](ParameterReader& reader) {
  AwcOptions options;
  reader.read("consensus", options.consensus);
  reader.read("power", options.power);
  return algorithm::awc(options);
}};

namespace {

/// Memory: P for the average. Bytes: P a neighbor; 2P(N-1)/N in the rounds that average.
struct GossipPga : Averaging {
  GossipPgaOptions options;

  RuleTraits traits() const {
    return {.name = "gossip_pga",
            .summary = "Σ_j W_ij (x_j + δ_j), and every H rounds the exact average of all",
            .source = "Gossip-PGA, Chen et al. 2021, arXiv 2105.09080, algorithm 1",
            .messages = {.own = Own::unused, .republishes = true},
            .timing = {.publish_point = PublishPoint::after_step, .average_every = options.period},
            .parameters = fmt::format("period={}", options.period)};
  }
};

}  // namespace

Rule gossip_pga(const GossipPgaOptions& options) {
  require(options.period >= 1, ErrorKind::argument, "gossip_pga: period {}; it must be 1 or more",
          options.period);
  return elementwise(GossipPga{{}, options});
}

const RuleEntry entries::gossip_pga{[](ParameterReader& reader) {
  GossipPgaOptions options;
  reader.read("period", options.period);
  return algorithm::gossip_pga(options);
}};

namespace {

/// Memory: none beyond the slots. Bytes: P a round in which the worker has a partner.
struct Pairwise : Averaging {
  static RuleTraits traits() {
    return {.name = "pairwise",
            .summary = "both of a pair take (x_i + x_j)/2, each adds its own δ",
            .source = "AD-PSGD, Lian et al. 2018, arXiv 1710.06952, algorithm 1, in rounds",
            .plain_average = true,
            .messages = {.own = Own::unused},
            .timing = {.why_synchronous = "both of a pair must average the same two values"},
            .topology = {.mixing = MixingRequirement::matching}};
  }
};

}  // namespace

Rule pairwise() { return elementwise(Pairwise{}); }

const RuleEntry entries::pairwise{[](ParameterReader&) { return algorithm::pairwise(); }};

}  // namespace fast::algorithm
