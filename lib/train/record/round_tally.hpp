// What a worker's rounds consisted of: seconds of each phase, waits for each worker, ages of what
// was read.
#pragma once

#include <fast/core/observer.hpp>

#include <array>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace fast::train {

struct RoundFigures {
  double step_s = 0;
  double publish_s = 0;         ///< without waits for readers
  double wait_s = 0;            ///< of the worker's thread, for other workers
  double mix_s = 0;             ///< without waits for what arrives meanwhile
  std::vector<double> waits_s;  ///< by worker, up to the last one that was waited for
  std::int64_t reads = 0;
  std::int64_t age_sum = 0, age_max = 0;  ///< rounds, over the reads

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

}  // namespace fast::train
