#include "worker/worker_options.hpp"

namespace fast {
namespace {

using namespace options;

constexpr double bytes_of_megabit = 1e6 / 8;
constexpr Range one_to_a_thousand{.low = 1, .high = 1001, .text = "a {} from 1 to 1000,"};
constexpr Range few_threads{
    .low = 1, .high = most_mixing_threads + 1, .text = "a {} from 1 to 256,"};

Value<WeightRule> weight_rules() {
  std::vector<std::pair<std::string, WeightRule>> rules;
  for (int i = 0; i <= static_cast<int>(WeightRule::automatic); ++i) {
    const auto rule = static_cast<WeightRule>(i);
    rules.emplace_back(name(rule), rule);
  }
  return choice(rules);
}

/// By name. The seed of random roundings is a row of its own.
Value<codec::Options> codecs() {
  const auto names = codec::names();
  Value<std::string> by_name = choice(std::vector<std::string>(names.begin(), names.end()));
  Value<codec::Options> value{.required = by_name.required, .names = by_name.names};
  value.parse = [parse = by_name.parse](std::string_view text, codec::Options& into) {
    std::string name;
    const Fit fit = parse(text, name);
    if (fit != Fit::good) return fit;
    const std::uint64_t seed = into.seed;
    into = codec::by_name(name);
    into.seed = seed;
    return fit;
  };
  value.format = [](const codec::Options& codec) { return codec::name(codec); };
  return value;
}

void add_exchange_rows(OptionTable& table, WorkerOptions& worker) {
  table.group("exchange");
  table
      .add("staleness", worker.staleness,
           or_word(number<std::int64_t>(zero_or_more()), "inf", unbounded_staleness),
           "how many rounds old a neighbor's weights may be; inf: any number, so that a worker "
           "never waits")
      .offer({"inf"})
      .agreed();
  table
      .add(
          "codec", worker.codec, codecs(),
          "coding of messages: identity, bf16 or fp16 (half the bytes), int8 (a quarter), int4 and "
          "int2 (for rules that send changes), qsgd4 and qsgd2 (QSGD, for the same rules); "
          "bf16_stochastic and int8_stochastic round at random so that the mean is exact")
      .agreed();
  table
      .add("codec_seed", worker.codec.seed, number<std::uint64_t>(any()),
           "seed of the random roundings of a stochastic codec")
      .agreed();
  table
      .add("mix_every", worker.mix_every, number<std::int64_t>(one_or_more()),
           "steps between two rounds in which weights are combined")
      .agreed();
  table
      .add(
          "mix_times", worker.mix_times, number<std::int64_t>(one_to_a_thousand),
          "averages in such a round (multi-step gossip), for rules that keep nothing between them: "
          "awc, atc, local, pairwise")
      .agreed();
  table
      .add("remote_path", worker.remote_path,
           choice<RemotePathChoice>({{"measured", RemotePathChoice::measured},
                                     {"two_sided", RemotePathChoice::two_sided},
                                     {"pull", RemotePathChoice::pull}}),
           "how workers on other hosts are reached: two_sided (messages), pull (reads) or measured "
           "(the faster one, for each pair of neighbors)")
      .agreed();
  table.add("remote_rate", worker.remote_bytes_per_s, scaled(zero_or_more(), bytes_of_megabit),
            "limit on what a worker sends to other hosts (pull: reads there), in Mbit/s; 0: none");
}

void add_topology_rows(OptionTable& table, WorkerOptions& worker) {
  table.group("topology");
  table
      .add("weights", worker.weights, weight_rules(),
           "rule of the mixing weights; automatic: what the topology prefers")
      .agreed();
  table.add("lazy_weights", worker.lazy_weights, "lazy mixing weights, (I + W) / 2").agreed();
}

void add_fault_rows(OptionTable& table, WorkerOptions& worker) {
  table.group("faults");
  table.add("deadline", worker.deadline, seconds(positive()),
            "seconds that a worker waits for another one without progress");
  table
      .add("failure_timeout", worker.suspect_after, optional(seconds(positive()), "auto"),
           "seconds without a sign of life after which a worker is left out; auto: from the gaps "
           "between each worker's signs of life, 1 to 10 s (5 s at first)")
      .also("suspect_after");
  table.add("rejoin_after", worker.rejoin_after, number<std::int64_t>(zero_or_more()),
            "combinations behind its neighbors from which a worker that was stopped adopts their "
            "average");
  table
      .add("on_nonfinite", worker.not_finite,
           choice<NotFinite>({{"abort", NotFinite::abort}, {"heal", NotFinite::heal}}),
           "what happens when a loss or weights are not finite: abort (the run ends) or heal (the "
           "step is left out)")
      .also("nan");
  table
      .add("robust", worker.robust,
           choice<Robust>({{"none", Robust::none},
                           {"clip", Robust::clip},
                           {"trimmed_mean", Robust::trimmed_mean}}),
           "what limits bad neighbors (for awc, atc and local): clip (a neighbor that is further "
           "away than others counts with a part of its difference) or trimmed_mean (of each "
           "element, the values in the middle count)")
      .agreed();
}

/// For programs that call the library: training programs set them by themselves.
void add_internal_rows(OptionTable& table, WorkerOptions& worker) {
  table
      .add("mixing_threads", worker.mixing_threads, number<int>(few_threads),
           "threads that average weights in host memory, the calling one among them")
      .internal();
  table
      .add("initial", worker.initial,
           choice<Initial>({{"broadcast", Initial::broadcast}, {"as_is", Initial::as_is}}),
           "initial weights: broadcast (all adopt worker 0's) or as_is (each keeps its own)")
      .agreed()
      .internal();
  table
      .add("must_agree", worker.must_agree, text(),
           "more text that must be equal on all workers, one setting a line")
      .internal();
}

}  // namespace

void add_rows(OptionTable& table, WorkerOptions& worker) {
  add_exchange_rows(table, worker);
  add_topology_rows(table, worker);
  add_fault_rows(table, worker);
  add_internal_rows(table, worker);
}

void add_rows(OptionTable& table, RuleChoice& rule) {
  const auto names = algorithm::names();
  table.group("exchange");
  table.add("algorithm", rule.name, choice(std::vector<std::string>(names.begin(), names.end())),
            "the rule that combines weights");
  table.add("algorithm_option", rule.options,
            "KEY=VALUE, an option of the rule (\"period=8\"); may be repeated");
}

algorithm::Rule RuleChoice::rule() const {
  return algorithm::by_name(name, algorithm::parameters_from(options));
}

}  // namespace fast
