// Where the weights of a test's worker are.
#pragma once

#include <fast/worker/worker.hpp>

#include <memory>
#include <string>

#include "support/host_accelerator.hpp"

namespace fast::testing {

/// The host's kernels fuse multiply-adds only on processors that can.
inline bool host_fuses() { return __builtin_cpu_supports("fma") != 0; }

/// staged: on devices whose messages pass through the host. mapped: on devices that read each
/// other.
enum class Place { host, staged, mapped };

inline std::string name(Place place) {
  return place == Place::host ? "host" : place == Place::staged ? "staged" : "mapped";
}

/// The tensor there, in memory that the program may touch between rounds. Sets the accelerator.
inline TensorView placed(TensorView view, Place place, WorkerOptions& options) {
  if (place == Place::host) return view;
  options.accelerator = std::make_shared<HostAccelerator>(
      Sharing{.on_host = place == Place::mapped, .on_all = true}, std::size_t{1} << 20);
  view.device = options.accelerator->device();
  return view;
}

}  // namespace fast::testing
