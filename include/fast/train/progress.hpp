// How far a run is: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace fast::train {

/// Where a run stands. Epochs and rounds done; the current epoch is the one begun last.
struct ProgressState {
  std::size_t epoch = 0;   ///< epochs finished before the current one
  std::size_t epochs = 0;  ///< of the run
  std::size_t round = 0;   ///< rounds finished in the current epoch
  std::size_t rounds = 0;  ///< of an epoch
  double loss = 0;
  double samples_per_second = 0;  ///< of all workers
  double elapsed_s = 0;
};

/// "epoch 2/5 [=====>    ] 120/234 | loss 0.4312 | 12345 samples/s | 0:21 left", of at most `width`
/// characters: the bar shrinks first, then the end is cut.
std::string progress_bar(const ProgressState& state, std::size_t width);

/// The same without a bar, for logs.
std::string progress_line(const ProgressState& state);

/// Prints to a stream that it does not own; made on one worker only. Not thread-safe.
class Progress {
 public:
  enum class Style { automatic, bar, lines };  ///< automatic: a bar if the stream is a terminal

  explicit Progress(std::FILE* out = stderr, Style style = Style::automatic);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap enough for every round: prints when, by `elapsed_s`, 0.1 s (bar) or 5 s (lines) have
  /// passed since the last time, and at the end of an epoch.
  void update(const ProgressState& state);

  /// Ends the bar's line, before something else is printed; the next update begins a new one.
  void finish();

 private:
  void print(const ProgressState& state);
  std::FILE* out_;
  bool bar_;
  bool line_open_ = false;
  double next_s_ = 0;
};

}  // namespace fast::train
