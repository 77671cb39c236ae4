// How far a run is: a bar on a terminal, otherwise a line every few seconds.
#pragma once

#include <fast/core/measure.hpp>
#include <fast/train/trainer.hpp>

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace fast::train {

/// Epochs and rounds that are done. The current epoch is the one begun last.
struct ProgressState {
  struct Accuracy {
    std::string_view samples;  ///< "test": on which it was measured
    double part = 0;           ///< of the samples; for another measure, its value
    Measure::Form form = Measure::Form::share;
    std::string name = {};  ///< of another measure than the accuracy
    std::string note = {};  ///< "epoch 2": what is to be said of it; a narrow bar leaves it out
  };
  std::size_t epoch = 0;           ///< epochs finished before the current one
  std::size_t epochs = 0;          ///< of the run
  std::size_t round = 0;           ///< rounds finished in the current epoch
  std::size_t rounds = 0;          ///< of an epoch
  std::optional<double> loss = 0;  ///< mean of the current epoch; empty: it had no samples so far
  double samples_per_second = 0;   ///< of all workers
  double elapsed_s = 0;
  std::optional<Accuracy> accuracy{};  ///< the latest, of the mean model
};

/// "epoch 2/5 [=====>    ] 120/234 | loss 0.4312 | 12345 samples/s | 0:21 left", at most `width`
/// characters long: the bar shrinks first, then the note goes, then the end is cut off.
std::string progress_bar(const ProgressState& state, std::size_t width);

/// The line of progress_bar() without a bar, for logs.
std::string progress_line(const ProgressState& state);

/// Prints to a stream that it does not own. For one worker of a run. Not thread-safe.
class Progress {
 public:
  explicit Progress(std::FILE* out = stderr, ProgressStyle style = ProgressStyle::automatic);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap enough for every round. Prints at the end of an epoch, and when `elapsed_s` has grown by
  /// 0.1 s (bar) or 5 s (lines) since the last time.
  void update(const ProgressState& state);

  /// Ends the bar's line before something else is printed. The next update begins a new line.
  void finish();

 private:
  void print(const ProgressState& state);
  void write(std::string_view text) const;
  std::FILE* out_;
  ProgressStyle style_;
  bool line_open_ = false;
  double next_s_ = 0;
};

}  // namespace fast::train
