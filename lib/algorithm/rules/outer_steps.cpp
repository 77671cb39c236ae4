#include "algorithm/rules/outer_steps.hpp"

#include <algorithm>

#include "algorithm/rule_entry.hpp"
#include "algorithm/top_k.hpp"
#include "core/numbers.hpp"

namespace fast::algorithm {

RuleTraits DiLoCo::traits() const {
  const bool exact = !options.changes;
  return {
      .name = "diloco",
      .summary = "H own steps to θ_j, then a momentum step from φ along the mean of φ - θ_j",
      .source =
          "DiLoCo, Douillard et al. 2023, arXiv 2311.08105, algorithm 1; fragments, delay and "
          "blend: Streaming DiLoCo, Douillard et al. 2025, arXiv 2501.18512",
      .messages = {.weights_apart = options.changes || options.fragments > 1,
                   .own = exact ? Own::payload : Own::message,
                   .republishes = options.delay == 0 && options.fragments == 1},
      .timing = {.publish_point = PublishPoint::after_step,
                 .combine_every = options.period / options.fragments,
                 .delay = options.delay,
                 .why_synchronous = "an outer step takes the changes of one and the same exchange"},
      .topology = {.mixing = MixingRequirement::complete},
      .precision = {.why_exact = exact ? why_weights_exact : std::string_view{},
                    .least_bits = exact ? 8 : 1},
      .memory = {.vectors = 2, .needs_equal_start = options.changes},
      .parameters = fmt::format(
          "period={} rate={} momentum={} nesterov={} fragments={} delay={} blend={} changes={}",
          options.period, options.rate, options.momentum, options.nesterov, options.fragments,
          options.delay, options.blend, options.changes)};
}

namespace {

/// One part of the model in each exchange, in turn. Bytes: P/F a neighbor every H/F steps.
struct StreamingDiLoCo {
  DiLoCo rule;

  RuleTraits traits() const {
    RuleTraits traits = rule.traits();
    traits.messages.selection = {Selection::Kind::fragments, rule.options.fragments};
    traits.precision.why_exact = "a part of the model travels as it is";
    return traits;
  }
  template <class T>
  void start(const Block<T>& block) {
    rule.start(block);
  }
  template <class T>
  void publish(const Block<T>& block) {
    rule.publish(block);
  }
  template <class T>
  void combine(const Block<T>& block) {
    const auto parts = static_cast<std::uint64_t>(rule.options.fragments);
    const std::uint64_t part = static_cast<std::uint64_t>(block.info.round) % parts;
    const std::uint64_t all = block.info.parameters;
    const std::uint64_t begin = std::max<std::uint64_t>(block.first, part_begin(all, parts, part));
    const std::uint64_t end =
        std::min<std::uint64_t>(block.first + block.count, part_begin(all, parts, part + 1));
    if (begin < end) rule.combine(part_of(block, begin - block.first, end - begin));
  }

 private:
  template <class T>
  static Block<T> part_of(Block<T> block, std::size_t first, std::size_t count) {
    block.first += first;
    block.count = count;
    block.current += first;
    block.own[0] += first;
    block.pull[0] += first;
    for (int s = 0; s < 2; ++s) block.state[s] += first;
    return block;
  }
};

/// The largest entries of the changes that have not traveled, whose memory takes the place of the
/// outer momentum. Bytes: so many entries, each with its index or its place in a chunk.
/// State: φ, and e, what has not traveled; momentum is its decay. From publish to combine, e has
/// what travels, too: only the message tells what a codec has made of it.
class SparseDiLoCo {
 public:
  explicit SparseDiLoCo(const DilocoOptions& options) : options_(options) {}

  RuleTraits traits() const {
    RuleTraits traits = DiLoCo{options_}.traits();
    traits.summary = "e ← β e + θ - φ; its top-k entries q travel; φ ← φ + η mean of q; e ← e - q";
    traits.source = "SparseLoCo, Sarfi et al. 2025, arXiv 2508.15706, algorithm 1";
    traits.messages.weights_apart = true;
    traits.messages.own = Own::message;
    traits.messages.sparsity = sparsity();
    traits.precision.why_exact = {};
    traits.precision.least_bits = 1;
    traits.precision.corrects_coding = true;
    traits.messages.republishes = false;
    traits.messages.surveys = true;
    traits.memory.needs_equal_start = true;
    traits.parameters = fmt::format("period={} rate={} momentum={} delay={} blend={} fraction={}",
                                    options_.period, options_.rate, options_.momentum,
                                    options_.delay, options_.blend, options_.fraction);
    return traits;
  }
  template <class T>
  void start(const Block<T>& block) {
    init_reference(block);
  }
  template <class T>
  void survey(const Block<T>& block) {
    if (block.first == 0) largest_.begin();
    for (std::size_t e = 0; e < block.count; ++e) largest_.add(untold(block, e));
  }
  bool begin_publish(const RoundInfo&, std::span<double>) {
    largest_.choose(sparsity().of(largest_.count()));
    return true;
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      const T all = untold(block, e);
      block.payload[0][e] = largest_.takes(all) ? all : T{0};
      block.state[1][e] = all;
    }
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T present = static_cast<T>(block.info.self_weight + block.info.neighbor_weight);
    const T eta = static_cast<T>(options_.rate);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T phi = block.state[0][e] + eta * (block.own[0][e] + block.pull[0][e] / present);
      block.state[0][e] = phi;
      block.state[1][e] -= block.own[0][e];
      block.current[e] = blended(options_.blend, block.current[e], phi);
    }
  }

 private:
  Sparsity sparsity() const { return {0, options_.fraction}; }
  template <class T>
  T untold(const Block<T>& block, std::size_t e) const {
    return static_cast<T>(options_.momentum) * block.state[1][e] + block.current[e] -
           block.state[0][e];
  }

  DilocoOptions options_;
  TopK largest_;
};

}  // namespace

Rule diloco(const DilocoOptions& options) {
  require(options.fragments >= 1 && options.period % options.fragments == 0, ErrorKind::argument,
          "diloco: fragments {}, period {}; fragments must be 1 or more and divide the period",
          options.fragments, options.period);
  require_outer("diloco", options, options.period / options.fragments);
  require_decay("diloco", "momentum", options.momentum);
  require(options.fraction >= 0 && options.fraction <= 1, ErrorKind::argument,
          "diloco: fraction {}; it must be at least 0 and at most 1", options.fraction);
  require(options.fraction == 0 || options.fragments == 1, ErrorKind::argument,
          "diloco: fraction {} with {} fragments; choose one of both", options.fraction,
          options.fragments);
  if (options.fraction > 0) return elementwise(SparseDiLoCo(options));
  if (options.fragments > 1) return elementwise(StreamingDiLoCo{{options}});
  return elementwise(DiLoCo{options});
}

const RuleEntry entries::diloco{[](ParameterReader& reader) {
  DilocoOptions options;
  reader.read("period", options.period);
  reader.read("rate", options.rate);
  reader.read("momentum", options.momentum);
  reader.read("nesterov", options.nesterov);
  reader.read("fragments", options.fragments);
  reader.read("delay", options.delay);
  reader.read("blend", options.blend);
  reader.read("changes", options.changes);
  reader.read("fraction", options.fraction);
  return algorithm::diloco(options);
}};

RuleTraits NoLoCo::traits() const {
  return {
      .name = "noloco",
      .summary = "H own steps to θ, then a momentum step from φ to the mean of two workers' θ",
      .source = "NoLoCo, Kolehmainen et al. 2025, arXiv 2506.10911, with γ = α",
      .messages = {.republishes = options.delay == 0},
      .timing = {.publish_point = PublishPoint::after_step,
                 .combine_every = options.period,
                 .delay = options.delay},
      .topology = {.mixing = MixingRequirement::matching},
      .precision = {.why_bits =
                        "a partner that changes holds nothing to which differences could refer"},
      .memory = {.vectors = 2},
      .parameters = fmt::format("period={} rate={} momentum={} delay={} blend={}", options.period,
                                options.rate, options.momentum, options.delay, options.blend)};
}

Rule noloco(const NolocoOptions& options) {
  require_outer("noloco", options, options.period);
  require_decay("noloco", "momentum", options.momentum);
  return elementwise(NoLoCo{{}, options});
}

const RuleEntry entries::noloco{[](ParameterReader& reader) {
  NolocoOptions options;
  reader.read("period", options.period);
  reader.read("rate", options.rate);
  reader.read("momentum", options.momentum);
  reader.read("delay", options.delay);
  reader.read("blend", options.blend);
  return algorithm::noloco(options);
}};

}  // namespace fast::algorithm
