// Proves an adapter: what the library expects of a Backend, checked one by one, in ten lines of a
// third party's own test program.
//
//   const auto report = fast::testing::check_backend(
//       [](std::uint64_t seed) { return std::make_unique<MyBackend>(seed); }, {.sample_shape =
//       {16}});
//   std::puts(report.to_text().c_str());
//   return report.passed() ? 0 : 1;
#pragma once

#include <fast/backend/backend.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fast::testing {

/// Makes a replica with weights from that seed, trained by SGD, with momentum or without, but not
/// Nesterov's, without weight decay, clipping and dropout. Called on several threads at once.
using BackendMaker = std::function<std::unique_ptr<Backend>(std::uint64_t seed)>;

/// The made-up classification problem that the suite trains on: each class has a random prototype,
/// samples are prototypes in noise.
struct Problem {
  std::vector<std::int64_t> sample_shape{16};
  std::int32_t classes = 4;
  std::size_t batch_size = 32;
  std::uint64_t seed = 1;  ///< of data and replicas
  /// The last layer is linear with a bias: all weights 0 give a loss of log(classes).
  bool zero_is_uniform = true;
  double learning_rate = 0.05;  ///< with which the loss halves in `steps` steps
  int steps = 80;
};

struct Check {
  std::string name;     ///< a sentence: "names are unique"
  std::string failure;  ///< what was found and what was required; empty: passed
};

struct Report {
  std::string backend;
  std::vector<Check> checks;
  bool passed() const;
  /// One line a check, "ok" or "FAILED" first, and a closing line with the counts.
  std::string to_text() const;
};

/// Runs all checks; an exception fails the check it passes through. Needs no MPI: workers are
/// threads. Throws Error(argument) on a problem out of range.
Report check_backend(const BackendMaker& make, const Problem& problem = {});

}  // namespace fast::testing
