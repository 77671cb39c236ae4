// The suite's checks. Each throws std::exception with what was found and what was required.
#pragma once

#include <fast/testing/conformance.hpp>

namespace fast::testing {

/// A made-up problem's samples.
struct Samples {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> shape;
  std::size_t values_per_sample = 1;

  /// The same prototypes for a seed, other noise for another `part`; labels 0, 1, ... in turn.
  Samples(const Problem& problem, std::size_t count, std::uint64_t part);
  Batch batch(std::size_t first, std::size_t count) const;
  Batch all() const { return batch(0, labels.size()); }
};

struct Context {
  const BackendMaker& make;
  const Problem& problem;
  Samples train, test;

  std::unique_ptr<Backend> replica(std::uint64_t which = 0) const {
    return make(problem.seed + which);
  }
  /// The batch of a step, in turn.
  Batch batch(int step) const;
};

using CheckFunction = void (*)(const Context&);
struct NamedCheck {
  const char* name;
  CheckFunction run;
};

std::vector<NamedCheck> view_checks();
std::vector<NamedCheck> learning_checks();
std::vector<NamedCheck> replica_checks();

/// All floating-point values of a backend, parameters and buffers, as double; of one role.
std::vector<double> values(Backend& backend);
std::vector<double> values(Backend& backend, Role role);
/// 0 of tensors of other types than floating-point ones.
double sum_of_squares(const TensorView& view);
/// Makes every floating-point value of that role f(its index among them).
void assign(Backend& backend, Role role, const std::function<double(std::size_t)>& f);

}  // namespace fast::testing
