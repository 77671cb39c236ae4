#include <fast/testing/conformance.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>

#include "core/floating.hpp"
#include "testing/checks.hpp"

namespace fast::testing {

Samples::Samples(const Problem& problem, std::size_t count, std::uint64_t part)
    : shape(problem.sample_shape) {
  for (const std::int64_t side : shape) values_per_sample *= static_cast<std::size_t>(side);
  const auto classes = static_cast<std::size_t>(problem.classes);
  Rng rng(mix_seed(problem.seed, 1));
  std::vector<float> prototypes(classes * values_per_sample);
  for (float& value : prototypes) value = static_cast<float>(rng.normal());
  Rng noise(mix_seed(problem.seed, 2, part));
  for (std::size_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::int32_t>(i % classes));
    const float* prototype = prototypes.data() + i % classes * values_per_sample;
    for (std::size_t v = 0; v < values_per_sample; ++v)
      inputs.push_back(prototype[v] + 0.3F * static_cast<float>(noise.normal()));
  }
}

Batch Samples::batch(std::size_t first, std::size_t count) const {
  return {std::span(inputs).subspan(first * values_per_sample, count * values_per_sample),
          std::span(labels).subspan(first, count), shape};
}

bool Report::passed() const {
  return std::ranges::all_of(checks, [](const Check& check) { return check.failure.empty(); });
}

std::string Report::to_text() const {
  std::string text;
  std::size_t failures = 0;
  for (const Check& check : checks) {
    const bool ok = check.failure.empty();
    text += fmt::format("{:<7} {}\n", ok ? "ok" : "FAILED", check.name);
    if (!ok) text += fmt::format("        {}\n", check.failure);
    failures += ok ? 0 : 1;
  }
  return text + fmt::format("{}: {} checks, {} failures\n", backend, checks.size(), failures);
}

namespace {

/// Calls visit(T*, count) with a floating view's memory.
template <class Visit>
void visit_floating(const TensorView& view, const Visit& visit) {
  if (!is_floating(view.dtype)) return;
  with_floating(view.dtype,
                [&]<class T>(T) { visit(static_cast<T*>(view.data), view.element_count()); });
}

void check(const Problem& problem) {
  for (const std::int64_t side : problem.sample_shape)
    require(side > 0, ErrorKind::argument, "Problem: a sample's side of {}; 1 or more is required",
            side);
  require(problem.classes >= 2 && problem.batch_size >= 2 && problem.steps >= 1 &&
              problem.learning_rate > 0,
          ErrorKind::argument,
          "Problem: {} classes, batches of {}, {} steps, learning rate {}; at least 2, 2, 1 and a "
          "positive number are required",
          problem.classes, problem.batch_size, problem.steps, problem.learning_rate);
}

}  // namespace

Batch Context::batch(int step) const {
  const std::size_t batches = train.labels.size() / problem.batch_size;
  return train.batch(static_cast<std::size_t>(step) % batches * problem.batch_size,
                     problem.batch_size);
}

double sum_of_squares(const TensorView& view) {
  double sum = 0;
  visit_floating(view, [&](const auto* data, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sum += as_double(data[i]) * as_double(data[i]);
  });
  return sum;
}

std::vector<double> values(Backend& backend, Role role) {
  std::vector<double> all;
  for (const TensorView& view : backend.parameters()) {
    if (view.role != role) continue;
    visit_floating(view, [&](auto* data, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) all.push_back(as_double(data[i]));
    });
  }
  return all;
}

std::vector<double> values(Backend& backend) {
  std::vector<double> all = values(backend, Role::parameter);
  const std::vector<double> buffers = values(backend, Role::buffer);
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

void assign(Backend& backend, Role role, const std::function<double(std::size_t)>& f) {
  std::size_t index = 0;
  for (const TensorView& view : backend.parameters()) {
    if (view.role != role) continue;
    visit_floating(view, [&]<class T>(T* data, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) data[i] = from_double<T>(f(index++));
    });
  }
}

Report check_backend(const BackendMaker& make, const Problem& problem) {
  check(problem);
  const std::size_t batches = 8;
  const Context context{make, problem, Samples(problem, batches * problem.batch_size, 0),
                        Samples(problem, 4 * problem.batch_size, 1)};
  Report report;
  for (const auto& list : {view_checks(), learning_checks(), replica_checks()}) {
    for (const NamedCheck& named : list) {
      Check& result = report.checks.emplace_back(Check{named.name, ""});
      try {
        named.run(context);
      } catch (const std::exception& error) {
        result.failure = error.what();
      } catch (...) {
        result.failure = "an exception that is not a std::exception";
      }
    }
  }
  try {
    report.backend = make(problem.seed)->name();
  } catch (...) {
    report.backend = "no backend";
  }
  return report;
}

}  // namespace fast::testing
