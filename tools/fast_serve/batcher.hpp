// Computes requests that arrive together in one forward pass.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "fast_serve/served_model.hpp"

namespace fast::serve {

struct BatchOptions {
  std::size_t max_batch = 64;  ///< samples of one forward pass
  /// How long a request waits for others. A full batch is computed at once.
  std::chrono::microseconds max_delay{2000};
  int threads = 1;                     ///< forward passes at a time
  std::size_t most_waiting = 1 << 16;  ///< samples that wait; more are refused
};

/// Several threads may call submit(). A request is computed by the version that it names, as a
/// whole: its samples are in one pass, or, if they are more than max_batch, in passes of their own.
class Batcher {
 public:
  using Clock = std::chrono::steady_clock;
  /// Told after each pass, by the thread that computed it.
  using OnPass = std::function<void(const ModelVersion&, std::size_t samples, double seconds)>;

  explicit Batcher(const BatchOptions& options, OnPass on_pass = {});
  /// Computes all that waits.
  ~Batcher();

  /// The logits [count x classes], later. `inputs` has count samples, as ModelVersion::inputs()
  /// gives them. Throws Refusal(503) when too many samples wait. With `may_compute`, a request
  /// that fills a batch while nothing else is to be computed is computed by the caller's thread.
  std::future<std::vector<float>> submit(std::shared_ptr<const ModelVersion> version,
                                         std::vector<float> inputs, std::size_t count,
                                         bool may_compute = true);

  std::size_t waiting() const;  ///< samples

  /// Computes nothing more: what waits and what comes later is refused with 503. A pass that has
  /// begun ends; a request of several passes is refused after it.
  void abandon();

 private:
  struct Job {
    std::vector<float> inputs;
    std::size_t count;
    Clock::time_point arrived;
    std::promise<std::vector<float>> result;
  };
  /// The jobs of a version, the oldest first.
  struct Line {
    std::shared_ptr<const ModelVersion> version;
    std::deque<Job> jobs;
    std::size_t samples = 0;
  };
  using Lines = std::list<Line>;

  void work();
  bool can_begin() const;
  void add(std::shared_ptr<const ModelVersion> version, Job job);
  Lines::iterator oldest();
  bool is_ready(const Line& line) const;
  std::vector<Job> take_batch(Line& line);
  void compute(const ModelVersion& version, std::vector<Job> jobs) const;
  std::vector<std::vector<float>> pass_together(const ModelVersion& version,
                                                std::span<const Job> jobs) const;
  std::vector<float> pass(const ModelVersion& version, std::span<const float> inputs,
                          std::size_t count) const;
  void refuse_if_abandoned() const;

  const BatchOptions options_;
  const OnPass on_pass_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Lines lines_;
  std::size_t waiting_ = 0;
  int computing_ = 0;  ///< passes, at most options_.threads
  bool stops_ = false;
  std::atomic<bool> is_abandoned_{false};
  std::vector<std::jthread> threads_;  // last: they end before the rest
};

}  // namespace fast::serve
