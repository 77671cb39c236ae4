#include <fast/algorithm/rules.hpp>

#include <cmath>
#include <fast/core/error.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/resynchronization.hpp"
#include "algorithm/rule_entry.hpp"
#include "algorithm/top_k.hpp"
#include "core/numbers.hpp"

namespace fast::algorithm {
namespace {

// What rules share that draw the entries of a message at random.

constexpr std::string_view why_bits_of_entries = "entries that travel alone share no scale";

Selection one_of_each_run(double fraction) {
  return {.kind = Selection::Kind::one_of_each_run,
          .size = saturate<std::int64_t>(std::round(1 / fraction))};
}

/// Memory: 2P of state, P of scratch, P in a slot for the mean model. Bytes: of top_k entries each
/// its index (4 bytes) and its value; of random_k the values alone; all of them in the codec's
/// code. State: x̂_i (at first 0, or the weights where all start with the same), and Σ_j W_ij (x̂_j -
/// x̂_i), which with a constant W grows by the neighbors' pull of q: so no copy of each neighbor's x̂
/// is kept. What a message becomes on its way is known in combine() only.
class Choco {
 public:
  explicit Choco(const ChocoOptions& options) : options_(options) {}

  RuleTraits traits() const {
    RuleTraits traits{.name = "choco",
                      .summary = "q = Q(x½ - x̂) is sent; x⁺ = x½ + α Σ_j W_ij (x̂_j - x̂_i)",
                      .source = "CHOCO-SGD, Koloskova et al. 2019, arXiv 1902.00340, algorithm 2",
                      .messages = {.delivery = Delivery::every,
                                   .sparsity = sparsity(),
                                   .weights_apart = true,
                                   .own = Own::message,
                                   .surveys = chooses_largest()},
                      .timing = {.publish_point = PublishPoint::after_step,
                                 .why_synchronous = "every message must be added exactly once"},
                      .topology = {.needs_static = true},
                      .precision = {.least_bits = 1, .corrects_coding = true},
                      .memory = {.vectors = 2, .remembers_neighbors = true},
                      .parameters = fmt::format(
                          "top_k={} fraction={} random_k={} consensus_step={}", options_.top_k,
                          options_.fraction, options_.random_k, options_.consensus_step)};
    if (!options_.random_k) return traits;
    traits.messages.selection = one_of_each_run(options_.fraction);
    traits.messages.selection.of_changes = true;
    traits.precision.least_bits = 16;
    traits.precision.why_bits = why_bits_of_entries;
    return traits;
  }
  template <class T>
  void start(const Block<T>& block) {
    resynchronization_.start(block.info);
    // Weights that all have need not be sent first.
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[0][e] = block.info.starts_equal ? block.current[e] : T{0};
      block.state[1][e] = 0;
    }
  }
  template <class T>
  void survey(const Block<T>& block) {
    if (block.first == 0) largest_.begin();
    for (std::size_t e = 0; e < block.count; ++e) largest_.add(unsent(block, e));
  }
  bool begin_publish(const RoundInfo&, std::span<double>) {
    if (chooses_largest()) largest_.choose(sparsity().of(largest_.count()));
    return true;
  }
  void begin_combine(const RoundInfo& info, std::span<const double>, std::span<const double>) {
    resynchronization_.begin_combine(info);
  }
  template <class T>
  void publish(const Block<T>& block) {
    const bool sends = resynchronization_.sends(), all = !chooses_largest();
    for (std::size_t e = 0; e < block.count; ++e) {
      const double difference = unsent(block, e);
      const bool goes = sends && (all || largest_.takes(difference));
      block.payload[0][e] = goes ? static_cast<T>(difference) : T{0};
    }
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T step =
        resynchronization_.uses_differences() ? static_cast<T>(options_.consensus_step) : T{0};
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[0][e] += block.own[0][e];
      block.state[1][e] += block.pull[0][e];
      block.current[e] += step * block.state[1][e];
    }
  }

  std::vector<TensorView> numbers() { return {resynchronization_.view()}; }

 private:
  template <class T>
  static double unsent(const Block<T>& block, std::size_t e) {
    return static_cast<double>(block.current[e]) - block.state[0][e];
  }
  bool chooses_largest() const {
    return !options_.random_k && (options_.top_k > 0 || options_.fraction < 1);
  }
  Sparsity sparsity() const {
    if (!chooses_largest()) return {};
    return {options_.top_k, options_.fraction};
  }
  ChocoOptions options_;
  Resynchronization resynchronization_;
  TopK largest_;
};

}  // namespace

Rule choco(const ChocoOptions& options) {
  require(options.top_k >= 0 && options.fraction > 0 && options.fraction <= 1 &&
              options.consensus_step > 0 && options.consensus_step <= 1,
          ErrorKind::argument,
          "choco: top_k {}, fraction {}, consensus_step {}; top_k must be 0 or more, the others "
          "above 0 and at most 1",
          options.top_k, options.fraction, options.consensus_step);
  require(!options.random_k || options.top_k == 0, ErrorKind::argument,
          "choco: random_k with top_k {}; random_k draws by `fraction`, leave top_k out",
          options.top_k);
  return elementwise(Choco(options));
}

const RuleEntry entries::choco{[](ParameterReader& reader) {
  ChocoOptions options;
  reader.read("top_k", options.top_k);
  reader.read("fraction", options.fraction);
  reader.read("consensus_step", options.consensus_step);
  reader.read("random_k", options.random_k);
  return algorithm::choco(options);
}};

namespace {

/// Memory: P of state. Bytes: P a neighbor in the rounds in which the worker sends, else nothing.
/// State: where the worker stood. What it last sent is its publication in force.
class EventTriggered : public WeightsPublished {
 public:
  explicit EventTriggered(const EventTriggeredOptions& options) : options_(options) {}

  RuleTraits traits() const {
    const std::string threshold =
        options_.threshold ? fmt::format("{}", *options_.threshold) : "adaptive";
    return {
        .name = "event_triggered",
        .summary = "awc on the values last sent; a worker sends when it moved far enough",
        .source = "EventGraD, Ghosh et al. 2021, arXiv 2103.07454, algorithm 1",
        .messages = {.surveys = true},
        .precision =
            {.why_exact =
                 "the error of a code pulls the worker back in every round until it sends again"},
        .memory = {.vectors = 1},
        .parameters = fmt::format("threshold={} horizon={}", threshold, options_.horizon)};
  }
  template <class T>
  void start(const Block<T>& block) {
    must_send_ = 1;
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  template <class T>
  void survey(const Block<T>& block) {
    if (must_send_ != 0) return;
    if (block.first == 0) moved_squared_ = 0;
    double sum = 0;
    for (std::size_t e = 0; e < block.count; ++e) {
      const double moved = static_cast<double>(block.current[e]) - block.own[0][e];
      sum += moved * moved;
    }
    moved_squared_ += sum;
  }
  bool begin_publish(const RoundInfo& info, std::span<double>) {
    const bool first = std::exchange(must_send_, 0) != 0;
    if (!first && !far_enough(info.round)) return false;
    sent_round_ = info.round;
    return true;
  }
  template <class T>
  void combine(const Block<T>& block) {
    // pull is relative to what was sent, the average to where the worker stood.
    const T weight = static_cast<T>(block.info.neighbor_weight);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next =
          block.current[e] + block.pull[0][e] + weight * (block.own[0][e] - block.state[0][e]);
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }

  std::vector<TensorView> numbers() {
    return {view_of("event_triggered.speed", std::span(&speed_, 1)),
            view_of("event_triggered.sent_round", std::span(&sent_round_, 1)),
            view_of("event_triggered.must_send", std::span(&must_send_, 1))};
  }

 private:
  /// Adaptive: steady movement sends every `horizon` rounds, a jump sooner; a worker that hardly
  /// moves, held by what its neighbors last sent, later, but it does.
  bool far_enough(std::int64_t round) {
    const double moved = std::sqrt(moved_squared_);
    const auto waited = static_cast<double>(std::max<std::int64_t>(1, round - sent_round_));
    const bool sends = options_.threshold
                           ? moved >= *options_.threshold
                           : moved * waited >= options_.horizon * options_.horizon * speed_;
    if (sends) speed_ = speed_ == 0 ? moved / waited : (speed_ + moved / waited) / 2;
    return sends;
  }

  EventTriggeredOptions options_;
  std::uint8_t must_send_ = 1;  ///< 0 or 1; tensors, which checkpoints hold, have no bool
  double moved_squared_ = 0;
  double speed_ = 0;  ///< movement a round between messages, smoothed
  std::int64_t sent_round_ = 0;
};

}  // namespace

Rule event_triggered(const EventTriggeredOptions& options) {
  require(!options.threshold || *options.threshold >= 0, ErrorKind::argument,
          "event_triggered: threshold {}; it must be 0 or more", options.threshold.value_or(0));
  require(options.horizon >= 0, ErrorKind::argument,
          "event_triggered: horizon {}; it must be 0 or more", options.horizon);
  return elementwise(EventTriggered(options));
}

const RuleEntry entries::event_triggered{[](ParameterReader& reader) {
  EventTriggeredOptions options;
  reader.read("threshold", options.threshold);
  reader.read("horizon", options.horizon);
  return algorithm::event_triggered(options);
}};

// sparta: what averaging a random part of the entries does to each element.

/// Memory: P in a slot for the mean model. Bytes: pP a neighbor.
/// Of each run of 1/p entries one travels.
struct Sparta : WeightsPublished {
  SpartaOptions options;

  RuleTraits traits() const;
  Selection selection() const {
    Selection selection = one_of_each_run(options.fraction);
    selection.seed = static_cast<std::uint64_t>(options.seed);
    return selection;
  }

  template <class T>
  void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

RuleTraits Sparta::traits() const {
  return {.name = "sparta",
          .summary = "x_i + δ_i; then a random part of the entries becomes Σ_j W_ij (x_j + δ_j)",
          .source = "SPARTA, exo-explore/gym, strategy/sparta.py, with neighbors in place of all",
          .messages = {.selection = selection(), .weights_apart = true, .own = Own::unused},
          .timing = {.publish_point = PublishPoint::after_step},
          .precision = {.least_bits = 16, .why_bits = why_bits_of_entries},
          .parameters = fmt::format("fraction={} seed={}", options.fraction, options.seed)};
}

Rule sparta(const SpartaOptions& options) {
  require(options.fraction > 0 && options.fraction <= 1, ErrorKind::argument,
          "sparta: fraction {}; it must be above 0 and at most 1", options.fraction);
  return elementwise(Sparta{{}, options});
}

const RuleEntry entries::sparta{[](ParameterReader& reader) {
  SpartaOptions options;
  reader.read("fraction", options.fraction);
  reader.read("seed", options.seed);
  return algorithm::sparta(options);
}};

}  // namespace fast::algorithm
