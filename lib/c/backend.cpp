#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>

#include "c/measures.hpp"

using namespace fast;

namespace {

struct HookCall {
  const GradientHook& hook;
  std::exception_ptr failure = {};
};

int call_hook(void* context, const fast_tensor* gradients, size_t count) {
  auto& call = *static_cast<HookCall*>(context);
  return c::guarded([&] {
    try {
      call.hook(c::views_of(gradients, count));
    } catch (...) {
      call.failure = std::current_exception();
      throw;
    }
  });
}

/// A caller that was compiled with an older header lacks the functions for metrics, or
/// evaluate_task().
fast_backend_functions backend_functions_of(const fast_backend_functions& given) {
  constexpr std::size_t sizes[] = {offsetof(fast_backend_functions, correct_in_step),
                                   offsetof(fast_backend_functions, evaluate_task),
                                   sizeof(fast_backend_functions)};
  const std::size_t size = given.struct_size;
  require(std::ranges::find(sizes, size) != std::end(sizes), ErrorKind::argument,
          "fast_backend_create: struct_size is {}; set it to sizeof(fast_backend_functions), {}",
          size, sizeof(fast_backend_functions));
  fast_backend_functions functions{};
  std::memcpy(&functions, &given, size);
  return functions;
}

class CallbackBackend final : public Backend {
 public:
  CallbackBackend(const fast_backend_functions& functions, void* user)
      : functions_(functions), user_(user), name_(functions.name) {}
  ~CallbackBackend() override {
    if (functions_.destroy != nullptr) functions_.destroy(user_);
  }
  CallbackBackend(const CallbackBackend&) = delete;
  CallbackBackend& operator=(const CallbackBackend&) = delete;

  void set_views(std::vector<TensorView> views) { views_ = std::move(views); }

  std::string name() const override { return name_; }
  std::vector<TensorView> parameters() override { return views_; }

  double train(const Batch& batch, const GradientHook& hook) override {
    const Handed handed(batch, takes_all_tasks());
    double loss = 0;
    HookCall call{hook};
    const int result =
        functions_.train(user_, &handed.batch, hook ? call_hook : nullptr, &call, &loss);
    if (call.failure) std::rethrow_exception(call.failure);
    c::require_success(result, "train");
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    const Handed handed(batch, takes_all_tasks());
    Evaluation evaluation;
    if (takes_all_tasks()) {
      fast_measures measures;
      const int result =
          functions_.evaluate_task(user_, &handed.batch, &evaluation.loss_sum, &measures);
      if (measures.refused) std::rethrow_exception(measures.refused);
      c::require_success(result, "evaluate_task");
      evaluation.measures = std::move(measures.measures);
      if (evaluation.measures.empty()) {
        const auto count = static_cast<double>(batch.count());
        evaluation.measures = {{"mean_loss", Measure::Form::mean, {evaluation.loss_sum, count}}};
      }
      return evaluation;
    }
    c::require_success(
        functions_.evaluate(user_, &handed.batch, &evaluation.loss_sum, &evaluation.correct),
        "evaluate");
    return evaluation;
  }

  void set_learning_rate(double learning_rate) override {
    c::require_success(functions_.set_learning_rate(user_, learning_rate), "set_learning_rate");
  }

  std::optional<std::size_t> correct_in_step() override {
    if (functions_.correct_in_step == nullptr) return {};
    std::size_t correct = 0;
    c::require_success(functions_.correct_in_step(user_, &correct), "correct_in_step");
    return correct;
  }

  std::optional<double> gradient_norm() override {
    if (functions_.gradient_norm == nullptr) return {};
    double norm = 0;
    c::require_success(functions_.gradient_norm(user_, &norm), "gradient_norm");
    return norm;
  }

 private:
  bool takes_all_tasks() const { return functions_.evaluate_task != nullptr; }

  /// Empty batches and such that lack values do not reach the caller's code.
  struct Handed {
    Handed(const Batch& from, bool any_task) {
      if (!any_task) require_class_labels(from, "fast_backend");
      std::size_t values = 1;
      for (const std::int64_t side : from.sample_shape) values *= static_cast<std::size_t>(side);
      require(from.count() > 0 && from.inputs.size() == from.count() * values, ErrorKind::argument,
              "fast_backend: a batch of {} samples and {} values; at least one sample of {} is "
              "required",
              from.count(), from.inputs.size(), values);
      batch = {from.inputs.data(),
               from.labels.empty() ? nullptr : from.labels.data(),
               from.sample_shape.data(),
               from.count(),
               values,
               static_cast<std::int32_t>(from.sample_shape.size()),
               static_cast<std::int32_t>(from.target_shape.size()),
               from.targets.empty() ? nullptr : from.targets.data(),
               from.target_shape.data(),
               from.target_size()};
    }
    fast_batch batch;
  };

  fast_backend_functions functions_;
  void* user_;
  std::string name_;
  std::vector<TensorView> views_;
};

}  // namespace

extern "C" {

fast_status fast_backend_create(const fast_backend_functions* functions, void* user,
                                const fast_tensor* tensors, size_t tensor_count,
                                fast_backend** backend) {
  return c::guarded([&] {
    c::require_given(functions, "functions");
    c::require_given(backend, "backend");
    const fast_backend_functions known = backend_functions_of(*functions);
    c::require_given(functions->name, "functions->name");
    auto made = std::make_unique<CallbackBackend>(known, user);
    c::require_given(functions->train, "functions->train");
    if (known.evaluate_task == nullptr) {
      c::require_given(functions->evaluate, "functions->evaluate");
    }
    c::require_given(functions->set_learning_rate, "functions->set_learning_rate");
    std::vector<TensorView> views = c::views_of(tensors, tensor_count);
    const ParameterLayout checked(views);
    made->set_views(std::move(views));
    *backend = new fast_backend{std::move(made)};
  });
}

void fast_backend_free(fast_backend* backend) { delete backend; }

}  // extern "C"
