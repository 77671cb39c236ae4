// What train() and evaluate() do.
#include <cmath>
#include <fast/core/error.hpp>
#include <optional>

#include "testing/checks.hpp"

namespace fast::testing {
namespace {

/// Nothing for a backend that has other measures in the place of the correct samples.
std::optional<std::size_t> correct_in(const Evaluation& found) {
  if (found.measures.empty() || found.correct > 0) return found.correct;
  for (const Measure& measure : found.measures) {
    if (measure.name == "accuracy" && measure.form == Measure::Form::share)
      return static_cast<std::size_t>(std::llround(measure.sums.at(0)));
  }
  return {};
}

void loss_falls(const Context& context) {
  const auto backend = context.replica();
  backend->set_learning_rate(context.problem.learning_rate);
  const Evaluation before = backend->evaluate(context.test.all());
  for (int step = 0; step < context.problem.steps; ++step) backend->train(context.batch(step));
  const Evaluation after = backend->evaluate(context.test.all());
  require(after.loss_sum < before.loss_sum / 2, ErrorKind::numeric,
          "{} steps took the sum of losses from {:.4g} to {:.4g}; half of it is required",
          context.problem.steps, before.loss_sum, after.loss_sum);
  const std::optional<std::size_t> correct = correct_in(after);
  const auto chance =
      context.test.labels.size() / static_cast<std::size_t>(context.problem.classes);
  require(!correct || *correct > 2 * chance || *correct == context.test.labels.size(),
          ErrorKind::numeric,
          "{} of {} samples are classified correctly after training; chance gives {}",
          correct.value_or(0), context.test.labels.size(), chance);
}

void evaluating_changes_nothing(const Context& context) {
  const auto backend = context.replica();
  backend->train(context.batch(0));
  const std::vector<double> before = values(*backend);
  const Evaluation first = backend->evaluate(context.test.all());
  require(values(*backend) == before, ErrorKind::mismatch,
          "evaluate() changed parameters or buffers");
  const Evaluation again = backend->evaluate(context.test.all());
  require(first.loss_sum == again.loss_sum && first.correct == again.correct, ErrorKind::mismatch,
          "evaluating twice gave losses of {:.9g} and {:.9g}", first.loss_sum, again.loss_sum);
}

void evaluations_add_up(const Context& context) {
  const auto backend = context.replica();
  const std::size_t count = context.test.labels.size(), head = count / 3;
  const Evaluation whole = backend->evaluate(context.test.all());
  const Evaluation a = backend->evaluate(context.test.batch(0, head));
  const Evaluation b = backend->evaluate(context.test.batch(head, count - head));
  require(whole.correct == a.correct + b.correct && whole.correct <= count, ErrorKind::mismatch,
          "{} of {} samples are classified correctly, of two parts {} and {}", whole.correct, count,
          a.correct, b.correct);
  const double parts = a.loss_sum + b.loss_sum;
  require(std::abs(whole.loss_sum - parts) <= 1e-4 * std::abs(parts), ErrorKind::mismatch,
          "losses sum up to {:.7g}, those of two parts to {:.7g}: is loss_sum a sum?",
          whole.loss_sum, parts);
}

void hook_sees_and_sets_gradients(const Context& context) {
  const auto backend = context.replica();
  backend->set_learning_rate(0.5);
  const std::vector<double> before = values(*backend, Role::parameter);
  std::vector<TensorView> parameters = backend->parameters();
  std::erase_if(parameters, [](const TensorView& view) { return view.role != Role::parameter; });
  int calls = 0;
  backend->train(context.batch(0), [&](const std::vector<TensorView>& gradients) {
    ++calls;
    require(gradients.size() == parameters.size(), ErrorKind::mismatch,
            "the hook saw {} gradients, there are {} parameters", gradients.size(),
            parameters.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const TensorView& view = gradients[i];
      require(view.shape == parameters[i].shape && view.dtype == parameters[i].dtype,
              ErrorKind::mismatch, "gradient {} is {}, its parameter {}", i, describe(view),
              describe(parameters[i]));
      require(view.is_contiguous(), ErrorKind::mismatch, "gradient {} has gaps", describe(view));
      std::fill_n(static_cast<std::byte*>(view.data), view.size_bytes(), std::byte{0});
    }
  });
  require(calls == 1, ErrorKind::mismatch, "the hook was called {} times in a step", calls);
  require(values(*backend, Role::parameter) == before, ErrorKind::mismatch,
          "gradients were set to 0 by the hook, yet the step moved the parameters");
}

/// What a backend says of a step beside its loss, as far as it says anything.
void figures_of_a_step_fit(const Context& context) {
  const auto backend = context.replica();
  backend->set_learning_rate(0);
  const Batch batch = context.batch(0);
  double square = 0;
  backend->train(batch, [&](const std::vector<TensorView>& gradients) {
    const TensorView& first = gradients.front();
    std::fill_n(static_cast<std::byte*>(first.data), first.size_bytes(), std::byte{0});
    for (const TensorView& view : gradients) square += sum_of_squares(view);
  });
  const double expected = std::sqrt(square);
  const double norm = backend->gradient_norm().value_or(expected);
  require(std::abs(norm - expected) <= 1e-2 * expected, ErrorKind::mismatch,
          "gradient_norm() is {:.6g}, the gradients that the hook left have a norm of {:.6g}", norm,
          expected);
  const std::optional<std::size_t> correct = backend->correct_in_step();
  if (!correct) return;
  const bool computes_alike = values(*backend, Role::buffer).empty();  // no batch normalization
  const std::size_t found =
      computes_alike ? correct_in(backend->evaluate(batch)).value_or(*correct) : *correct;
  require(*correct <= batch.count() && *correct <= found + 1 && found <= *correct + 1,
          ErrorKind::mismatch,
          "correct_in_step() is {} of {} samples, evaluate() with the same weights finds {}",
          *correct, batch.count(), found);
}

void learning_rate_of_zero_stands_still(const Context& context) {
  const auto backend = context.replica();
  const std::vector<double> before = values(*backend, Role::parameter);
  backend->set_learning_rate(0);
  backend->train(context.batch(0));
  require(values(*backend, Role::parameter) == before, ErrorKind::mismatch,
          "a step of learning rate 0 changed parameters");
}

template <class Call>
void require_refused(const char* what, const Call& call) {
  try {
    call();
  } catch (const Error&) {
    return;
  }
  fail(ErrorKind::mismatch, "{} was taken; Error(argument) is required", what);
}

void bad_batches_are_refused(const Context& context) {
  const auto backend = context.replica();
  const Samples& samples = context.test;
  require_refused("an empty batch", [&] { backend->train(samples.batch(0, 0)); });
  Batch shorter = samples.batch(0, 4);
  shorter.inputs = shorter.inputs.first(shorter.inputs.size() - 1);
  require_refused("a batch that lacks a value", [&] { backend->train(shorter); });
  Samples wrong(context.problem, 4, 2);
  wrong.labels[2] = context.problem.classes;
  require_refused("a label beyond the classes", [&] { backend->train(wrong.all()); });
  wrong.labels[2] = -1;
  require_refused("a negative label", [&] { backend->evaluate(wrong.all()); });
}

}  // namespace

std::vector<NamedCheck> learning_checks() {
  return {{"the loss falls on a small problem", loss_falls},
          {"evaluating changes nothing", evaluating_changes_nothing},
          {"evaluations of parts add up to the whole", evaluations_add_up},
          {"the hook sees the gradients, and the step takes what it leaves",
           hook_sees_and_sets_gradients},
          {"the figures of a step, where there are some, are its gradients' and its samples'",
           figures_of_a_step_fit},
          {"a learning rate of 0 stands still", learning_rate_of_zero_stands_still},
          {"batches that do not fit are refused with fast::Error", bad_batches_are_refused}};
}

}  // namespace fast::testing
