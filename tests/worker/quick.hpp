// Options of a Worker in scenarios: own initial weights, and no long waits.
#pragma once

#include <fast/worker/worker.hpp>

namespace fast::testing {

inline WorkerOptions quick() {
  WorkerOptions options;
  options.initial = Initial::as_is;
  options.deadline = Seconds(40);
  return options;
}

}  // namespace fast::testing
