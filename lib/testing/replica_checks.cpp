// Several replicas, and workers that average them.
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "testing/checks.hpp"

namespace fast::testing {
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

}  // namespace

std::vector<NamedCheck> replica_checks() {
  return {{"a seed decides initial values and trajectory", one_seed_one_trajectory},
          {"replicas share nothing", replicas_are_apart},
          {"replicas train on several threads as they do alone", threads_train_as_one_would},
          {"what a worker publishes is the views' memory", publishing_is_memory},
          {"averaging two replicas gives the mean, and the model computes with it",
           averaging_gives_the_mean},
          {"two workers learn together", neighbors_learn_together}};
}

}  // namespace fast::testing
