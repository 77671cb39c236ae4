// The lines of metrics of a worker: what it was told by the run, and what happened in its rounds.
#pragma once

#include <fast/core/observer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "train/metrics.hpp"

namespace fast::train {

/// What a worker's training steps of an epoch add up to.
class EpochSums {
 public:
  /// A step on so many samples. `correct`: how many of them the model got right, if that is known.
  void add(double loss, std::size_t samples, std::optional<std::size_t> correct) {
    loss_sum_ += loss;
    ++steps_;
    samples_ += samples;
    correct_ = steps_ == 1 || correct_ ? sum(correct) : std::nullopt;
  }

  /// Over the steps. Empty without any: none of the samples could be read.
  std::optional<double> mean_loss() const {
    if (steps_ == 0) return {};
    return loss_sum_ / static_cast<double>(steps_);
  }
  /// A share of the samples, 0..1. Empty unless it is known of all steps.
  std::optional<double> accuracy() const {
    if (!correct_) return {};
    return static_cast<double>(*correct_) / static_cast<double>(samples_);
  }

 private:
  std::optional<std::size_t> sum(std::optional<std::size_t> correct) const {
    return correct ? std::optional(correct_.value_or(0) + *correct) : std::nullopt;
  }

  double loss_sum_ = 0;
  std::size_t steps_ = 0, samples_ = 0;
  std::optional<std::size_t> correct_;
};

/// What a worker's rounds consisted of: seconds of each phase, waits for each worker, ages of what
/// was read and how much of it robust averaging has kept.
struct RoundFigures {
  double step_s = 0;
  double publish_s = 0;         ///< without waits for readers
  double wait_s = 0;            ///< of the worker's thread, for other workers
  double mix_s = 0;             ///< without waits for what arrives meanwhile
  std::vector<double> waits_s;  ///< by worker, up to the last one that was waited for
  std::int64_t reads = 0;
  std::int64_t age_sum = 0, age_max = 0;  ///< rounds, over the reads
  struct Kept {
    std::int64_t reads = 0;
    double share = 0;  ///< sum over these
  };
  std::vector<Kept> kept;  ///< by worker, up to the last one that was read

  double age_mean() const;  ///< NaN without reads
};

/// Adds up two windows at a time. Thread-safe.
class RoundTally {
 public:
  enum class Window { interval, epoch };

  void add(const PhaseEvent& event);
  void add(const MessageEvent& event);
  /// A part of the last steps in which the worker waited: an all-reduce of gradients.
  void add_wait_within_step(double seconds);
  /// What was added since the window was taken last.
  RoundFigures take(Window window);

 private:
  template <class Add>
  void add_to_both(const Add& add);

  std::mutex mutex_;
  std::array<RoundFigures, 2> windows_;
  std::thread::id rounds_;   ///< the thread that makes rounds
  double peers_wait_s_ = 0;  ///< of that thread, within the phase that has not ended
};

/// How far a worker is.
struct RunFigures {
  std::int64_t step = 0;  ///< rounds made
  int epoch = 0;          ///< from 1 on
  double samples = 0;     ///< trained on since this program began
  double reduce_s = 0;    ///< waited within steps since this program began
};

/// Lines of kinds "start", "interval", "evaluation", "epoch", "event" and "end"; see
/// docs/reference/metrics.md. A line that cannot be written (disk full) is left out, and the first
/// time there is a warning. Thread-safe.
class RunMetrics final : public Observer {
 public:
  /// Writes nothing before open(), and nothing while `may_write` answers false: a worker that was
  /// suspended may have lost its seat meanwhile.
  explicit RunMetrics(LogSink log, std::function<bool()> may_write = {});
  /// Tells the launcher, too, how far this worker is, for fastrun --watch.
  void notify_launcher() { notifies_launcher_ = true; }
  /// Throws as MetricsWriter does.
  void open(const std::filesystem::path& directory, int rank);
  bool is_open() const { return writer_.has_value(); }

  /// Training begins, after `step` rounds.
  void start(std::vector<Metric> facts, std::int64_t step = 0);
  /// A spare has taken a seat. Its lines continue those of the worker before it: "seconds" count
  /// from the making of this object.
  void join(std::int64_t step);
  void begin_epoch();
  /// After every round: adds a line of the interval when the last one is two seconds old. True if
  /// it did.
  bool after_round(const RunFigures& figures);
  /// The epoch's rounds are over: what end_epoch() says of them ends here.
  void end_rounds();
  void end_epoch(std::vector<Metric> results);
  void add(std::string_view kind, std::vector<Metric> line);
  /// The last line. `state`: "finished", "stopped" or "left".
  void end(std::int64_t step, const char* state, std::vector<Metric> results);
  /// worker: whom it concerns; -1: no one.
  void event(std::string_view name, std::int64_t step, int worker = -1, std::string text = {});
  /// The run ends with an error on this worker: an event and the last line.
  void fail(std::string text);

  void on_phase(const PhaseEvent& event) noexcept override { tally_.add(event); }
  void on_message(const MessageEvent& event) noexcept override { tally_.add(event); }
  void on_peer(const PeerEvent& event) noexcept override;
  void on_milestone(const MilestoneEvent& event) noexcept override;
  /// What was told of a site that is forgotten stands in no line any more.
  void on_site(const SiteEvent& event) noexcept override;
  /// Those of a site, whose names begin with site_scalars, stand in the lines that follow.
  void on_scalar(const ScalarEvent& event) noexcept override;

 private:
  /// A part of training that ends with a line.
  struct Span {
    Clock::time_point began = Clock::now();
    double samples = 0;  ///< before it
  };
  struct SpanFigures;
  SpanFigures figures_of(RoundTally::Window window, const Span& span);
  void add_interval();
  void append_site(std::vector<Metric>& line) const;
  void notify_sites() const;

  void begin(Clock::time_point at);
  void begin_intervals();

  Clock::time_point made_ = Clock::now();
  RoundTally tally_;
  LogSink log_;
  std::function<bool()> may_write_;
  std::mutex writing_;
  std::optional<MetricsWriter> writer_;
  int rank_ = -1;
  bool warned_ = false, notifies_launcher_ = false;
  // Of the worker's thread alone:
  RunFigures now_;
  Span epoch_, interval_;
  std::vector<Metric> epoch_figures_;
  Figures site_;
};

}  // namespace fast::train
