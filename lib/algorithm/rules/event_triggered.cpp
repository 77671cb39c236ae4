#include <cmath>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
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

}  // namespace fast::algorithm
