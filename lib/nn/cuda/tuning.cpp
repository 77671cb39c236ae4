#include "nn/cuda/tuning.hpp"

#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <fast/cuda/memory.hpp>
#include <limits>

#include "core/numbers.hpp"
#include "cuda/device/runtime.hpp"

namespace fast::cuda {
namespace {

constexpr std::size_t most_workspace_bytes = std::size_t{1} << 30;
constexpr int runs = 3, most_enqueued = 10;
constexpr double run_ms = 2;       // of a run that is long enough
constexpr double launch_ms = 0.1;  // at most, of the host's part of one run
constexpr double load_ms = 200;    // at most, of what a library does once, such as loading a kernel

/// Measures work on a stream.
class Timer {
 public:
  Timer() {
    for (Marked& mark : marks_) {
      cudaEvent_t made = nullptr;
      check(cudaEventCreate(&made), "cudaEventCreate");
      mark.reset(made);
    }
  }
  template <class Work>
  double time_ms(const Stream& stream, const Work& work) const {
    mark(0, stream);
    work();
    mark(1, stream);
    stream.synchronize(Deadline(Seconds(60)));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, event(0), event(1)), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  using Marked = Handle<destroy_event>;
  cudaEvent_t event(std::size_t i) const { return static_cast<cudaEvent_t>(marks_[i].get()); }
  void mark(std::size_t i, const Stream& stream) const {
    check(cudaEventRecord(event(i), static_cast<cudaStream_t>(stream.handle())), "cudaEventRecord");
  }
  std::array<Marked, 2> marks_;
};

}  // namespace

std::optional<double> time_ms(std::size_t workspace_bytes, const TimedWork& work,
                              std::optional<double> rival_ms) try {
  if (workspace_bytes > most_workspace_bytes) return std::nullopt;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const Stream stream(device);
  const Timer timer;
  const DeviceBuffer workspace(workspace_bytes, device);
  const auto run = [&] { work(workspace.data(), stream.handle()); };
  const double first_ms = timer.time_ms(stream, run);
  if (rival_ms && first_ms > 2 * *rival_ms + load_ms) return std::nullopt;
  const double second_ms = timer.time_ms(stream, run);
  if (rival_ms && second_ms > 2 * *rival_ms + launch_ms) return std::nullopt;
  const int enqueued = std::clamp(saturate<int>(run_ms / second_ms), 1, most_enqueued);
  const auto several = [&] {
    for (int k = 0; k < enqueued; ++k) run();
  };
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) least = std::min(least, timer.time_ms(stream, several));
  return least / enqueued;
} catch (const Error&) {
  cudaGetLastError();  // clear it: the next kernel did not fail
  return std::nullopt;
}

}  // namespace fast::cuda
