// Several replicas, and workers that average them.

#include <fmt/format.h>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <limits>
#include <optional>

#include "testing/checks.hpp"

namespace fast::testing {
namespace {

// What parameters() hands out.

void framework_has_a_name(const Context& context) {
  require(!context.replica()->name().empty(), ErrorKind::argument, "name() is empty");
}

/// ParameterLayout refuses names twice, no elements, no memory, gaps and overlap.
void views_hold_together(const Context& context) {
  const ParameterLayout layout(context.replica()->parameters());
  require(layout.parameter_count() > 0, ErrorKind::argument,
          "there are buffers only; parameters are required");
}

void views_stay(const Context& context) {
  const auto backend = context.replica();
  const std::vector<TensorView> first = backend->parameters();
  for (int step = 0; step < 3; ++step) backend->train(context.batch(step));
  backend->evaluate(context.test.all());
  backend->evaluate(context.test.batch(0, 1));
  const std::vector<TensorView> later = backend->parameters();
  require(later.size() == first.size(), ErrorKind::mismatch,
          "{} views at first, {} after some steps", first.size(), later.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    require(describe(first[i]) == describe(later[i]) && first[i].data == later[i].data,
            ErrorKind::mismatch, "view {} was {} at {}, after some steps it is {} at {}", i,
            describe(first[i]), fmt::ptr(first[i].data), describe(later[i]),
            fmt::ptr(later[i].data));
}

void values_are_finite(const Context& context) {
  const auto backend = context.replica();
  for (const double value : values(*backend))
    require(std::isfinite(value) && std::abs(value) < 1e6, ErrorKind::numeric,
            "an initial value reads as {}: is its dtype true?", value);
}

/// With v = w + δ and δ = -γ g a step takes γ ‖g‖² = ‖δ‖²/γ off the loss to first order.
void steps_descend(const Context& context) {
  const auto backend = context.replica();
  const double rate = 1e-3;
  backend->set_learning_rate(rate);
  const std::vector<double> before = values(*backend, Role::parameter);
  const double loss = backend->train(context.batch(0));
  const std::vector<double> after = values(*backend, Role::parameter);
  double moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    moved += (after[i] - before[i]) * (after[i] - before[i]);
  require(moved > 0, ErrorKind::mismatch, "a step changed nothing in the views");
  backend->set_learning_rate(0);
  const double fell = loss - backend->train(context.batch(0));
  require(fell > 0.6 * moved / rate && fell < 1.5 * moved / rate, ErrorKind::mismatch,
          "the loss fell by {:.3g}, the views moved as if by {:.3g}: are dtypes true, all "
          "parameters handed out, and the loss a mean?",
          fell, moved / rate);
}

void writing_is_training(const Context& context) {
  const auto backend = context.replica();
  if (context.problem.zero_is_uniform) {
    assign(*backend, Role::parameter, [](std::size_t) { return 0.0; });
    const double found = backend->evaluate(context.test.all()).loss_sum;
    const double expected = std::log(static_cast<double>(context.problem.classes)) *
                            static_cast<double>(context.test.labels.size());
    require(std::abs(found - expected) < 1e-3 * expected, ErrorKind::mismatch,
            "with all weights 0 the losses sum up to {:.6g}, log(classes) makes {:.6g}", found,
            expected);
  }
  const auto from = context.replica(1);
  const std::vector<double> other = values(*from, Role::parameter);
  assign(*backend, Role::parameter, [&](std::size_t i) { return other[i]; });
  const double copied = backend->evaluate(context.test.all()).loss_sum;
  const double expected = from->evaluate(context.test.all()).loss_sum;
  require(
      std::abs(copied - expected) <= 1e-5 * std::abs(expected), ErrorKind::mismatch,
      "with another replica's weights written to its views a replica's losses sum up to {:.9g}, "
      "the other's to {:.9g}",
      copied, expected);
}

void written_values_stay(const Context& context) {
  const auto backend = context.replica();
  const auto pattern = [](std::size_t i) { return static_cast<double>(i % 16) / 64.0; };
  assign(*backend, Role::parameter, pattern);
  backend->set_learning_rate(0);
  backend->train(context.batch(0));
  backend->evaluate(context.test.all());
  const std::vector<double> found = values(*backend, Role::parameter);
  for (std::size_t i = 0; i < found.size(); ++i)
    require(found[i] == pattern(i), ErrorKind::mismatch,
            "value {} was written as {}; after a step of learning rate 0 it is {}", i, pattern(i),
            found[i]);
}

}  // namespace

std::vector<NamedCheck> view_checks() {
  return {
      {"the framework has a name", framework_has_a_name},
      {"names are unique, memory is whole, contiguous and does not overlap", views_hold_together},
      {"views stay where they are", views_stay},
      {"initial values are finite numbers of their dtype", values_are_finite},
      {"a step moves the views down the gradient of the loss", steps_descend},
      {"what is written to the views is what the model computes with", writing_is_training},
      {"written values stay as they are at a learning rate of 0", written_values_stay}};
}

namespace {

WorkerOptions worker_options() {
  WorkerOptions options;
  options.deadline = Seconds(60);
  options.weights = WeightRule::uniform_rows;
  return options;
}

void one_seed_one_trajectory(const Context& context) {
  const auto a = context.replica(), b = context.replica();
  require(values(*a) == values(*b), ErrorKind::mismatch,
          "two replicas from one seed start from different values");
  for (int step = 0; step < 3; ++step) {
    a->train(context.batch(step));
    b->train(context.batch(step));
  }
  require(values(*a) == values(*b), ErrorKind::mismatch,
          "two replicas from one seed differ after three steps on the same batches");
  require(values(*context.replica(1)) != values(*context.replica()), ErrorKind::mismatch,
          "two replicas from different seeds start from the same values");
}

void replicas_are_apart(const Context& context) {
  const auto a = context.replica(), b = context.replica();
  const std::vector<double> before = values(*b);
  a->set_learning_rate(context.problem.learning_rate);
  a->train(context.batch(0));
  require(values(*b) == before, ErrorKind::mismatch, "training one replica changed another");
}

void threads_train_as_one_would(const Context& context) {
  const auto alone = context.replica();
  for (int step = 0; step < 3; ++step) alone->train(context.batch(step));
  const std::vector<double> expected = values(*alone);
  local::run(2, [&](const Group&) {
    const auto backend = context.replica();
    for (int step = 0; step < 3; ++step) backend->train(context.batch(step));
    require(values(*backend) == expected, ErrorKind::mismatch,
            "replicas trained by two threads at once differ from one trained alone");
  });
}

void publishing_is_memory(const Context& context) {
  local::run(1, [&](const Group& group) {
    const auto backend = context.replica();
    Worker worker(group, stencil::ring(), backend->parameters(), worker_options());
    worker.step([&] { return backend->train(context.batch(0)); });
    worker.finish();
    const ParameterLayout layout(backend->parameters());
    std::vector<std::byte> memory(layout.size_bytes()), published(layout.size_bytes());
    layout.gather(memory.data());
    worker.mean_model(published);
    require(memory == published, ErrorKind::mismatch,
            "what a worker published differs from the views' memory");
  });
}

/// x⁺ = (x_a + x_b)/2 where no step moves anything.
void averaging_gives_the_mean(const Context& context) {
  const std::vector<double> a = values(*context.replica(0)), b = values(*context.replica(1));
  local::run(2, [&](const Group& group) {
    const auto backend = context.replica(static_cast<std::uint64_t>(group.rank()));
    WorkerOptions options = worker_options();
    options.initial = Initial::as_is;
    Worker worker(group, stencil::complete(), backend->parameters(), options);
    worker.step([] {});
    const std::vector<double> found = values(*backend);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double mean = (a[i] + b[i]) / 2;
      require(std::abs(found[i] - mean) <= 1e-2 * std::abs(mean) + 1e-6, ErrorKind::mismatch,
              "value {} is {} after {} and {} were averaged", i, found[i], a[i], b[i]);
    }
    const auto fresh = context.replica(2);
    std::size_t parameters = values(*fresh, Role::parameter).size();
    assign(*fresh, Role::parameter, [&](std::size_t i) { return found[i]; });
    assign(*fresh, Role::buffer, [&](std::size_t i) { return found[parameters + i]; });
    const double expected = fresh->evaluate(context.test.all()).loss_sum;
    const double loss = backend->evaluate(context.test.all()).loss_sum;
    require(std::abs(loss - expected) <= 1e-5 * std::abs(expected), ErrorKind::mismatch,
            "a replica that was averaged has losses of {:.9g}, one with the same values written "
            "to it of {:.9g}",
            loss, expected);
  });
}

void neighbors_learn_together(const Context& context) {
  local::run(2, [&](const Group& group) {
    const auto backend = context.replica(static_cast<std::uint64_t>(group.rank()));
    backend->set_learning_rate(context.problem.learning_rate);
    const double before = backend->evaluate(context.test.all()).loss_sum;
    Worker worker(group, stencil::complete(), backend->parameters(), worker_options());
    for (int step = 0; step < context.problem.steps; ++step)
      worker.step([&] { return backend->train(context.batch(2 * step + group.rank())); });
    const double after = backend->evaluate(context.test.all()).loss_sum;
    require(after < before / 2, ErrorKind::numeric,
            "worker {} of two took its losses from {:.4g} to {:.4g} in {} steps; half is required",
            group.rank(), before, after, context.problem.steps);
    worker.await_finish();
  });
}

void make_last_nan(Backend& backend) {
  const std::vector<double> now = values(backend, Role::parameter);
  assign(backend, Role::parameter, [&now](std::size_t i) {
    return i + 1 < now.size() ? now[i] : std::numeric_limits<double>::quiet_NaN();
  });
}

/// Worker 1's second step ends with NaN in the last value. Worker 1 is to end with Error(numeric),
/// before worker 0 can read the value.
void not_finite_infects_nobody(const Context& context) {
  local::run(2, [&](const Group& group) {
    const auto backend = context.replica(static_cast<std::uint64_t>(group.rank()));
    std::optional<ErrorKind> ended_by;
    try {
      Worker worker(group, stencil::complete(), backend->parameters(), worker_options());
      for (int step = 0; step < 4; ++step) {
        worker.step([&] {
          backend->train(context.batch(step));
          if (group.rank() == 1 && step == 1) make_last_nan(*backend);
        });
      }
      worker.await_finish();
    } catch (const Error& error) {
      ended_by = error.kind();
    }
    const ErrorKind expected = group.rank() == 1 ? ErrorKind::numeric : ErrorKind::peer_failed;
    require(ended_by == expected, ErrorKind::mismatch,
            "worker 1 of two had NaN after a step; worker {} did not end with the error for it",
            group.rank());
    if (group.rank() == 1) return;
    for (const double value : values(*backend))
      require(std::isfinite(value), ErrorKind::mismatch,
              "worker 1 had NaN after a step, and worker 0 has {} now", value);
  });
}

}  // namespace

std::vector<NamedCheck> replica_checks() {
  return {{"a seed decides initial values and trajectory", one_seed_one_trajectory},
          {"replicas share nothing", replicas_are_apart},
          {"replicas train on several threads as they do alone", threads_train_as_one_would},
          {"what a worker publishes is the views' memory", publishing_is_memory},
          {"averaging two replicas gives the mean, and the model computes with it",
           averaging_gives_the_mean},
          {"two workers learn together", neighbors_learn_together},
          {"a value that is not finite ends the worker that has it and reaches no other",
           not_finite_infects_nobody}};
}

}  // namespace fast::testing
