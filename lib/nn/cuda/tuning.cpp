#include "nn/cuda/tuning.hpp"

#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <fast/cuda/memory.hpp>
#include <limits>

#include "cuda/device/runtime.hpp"

namespace fast::cuda {
namespace {

constexpr std::size_t most_workspace_bytes = std::size_t{1} << 30;
constexpr int runs = 3, enqueued_in_a_run = 10;
constexpr double launch_ms = 0.1;  // at most, of the host's part of one run

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
  run();
  if (rival_ms && timer.time_ms(stream, run) > 2 * *rival_ms + launch_ms) return std::nullopt;
  double least = std::numeric_limits<double>::infinity();
  const auto several = [&] {
    for (int k = 0; k < enqueued_in_a_run; ++k) run();
  };
  for (int i = 0; i < runs; ++i) least = std::min(least, timer.time_ms(stream, several));
  return least / enqueued_in_a_run;
} catch (const Error&) {
  cudaGetLastError();  // clear it: the next kernel did not fail
  return std::nullopt;
}

}  // namespace fast::cuda
