// What a caller's evaluate_task() measures.

#include <fast/core/measure.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "c/handles.hpp"
#include "core/contains.hpp"

struct fast_measures {
  std::vector<fast::Measure> measures;
  std::exception_ptr refused;  ///< of the first that was refused
};

using namespace fast;
using Form = Measure::Form;

static_assert(static_cast<int>(Form::share) == FAST_MEASURE_SHARE &&
              static_cast<int>(Form::mean) == FAST_MEASURE_MEAN &&
              static_cast<int>(Form::root_of_mean) == FAST_MEASURE_ROOT_OF_MEAN &&
              static_cast<int>(Form::exp_of_mean) == FAST_MEASURE_EXP_OF_MEAN);

namespace {

Form form_of(const fast_measure_form& given) {
  std::underlying_type_t<fast_measure_form> form{};  // C may put any number into an enum
  std::memcpy(&form, &given, sizeof form);
  require(form >= FAST_MEASURE_SHARE && form <= FAST_MEASURE_EXP_OF_MEAN, ErrorKind::argument,
          "fast_measures_add: form {}; choose one of fast_measure_form", form);
  return static_cast<Form>(form);
}

/// Of this name. If there is none yet, it becomes make_zero().
template <class MakeZero>
Measure& measure_of(fast_measures& all, const char* name, const MakeZero& make_zero) {
  const auto found = std::ranges::find(all.measures, name, &Measure::name);
  if (found != all.measures.end()) return *found;
  Measure zero = make_zero();
  require_valid({zero});
  return all.measures.emplace_back(std::move(zero));
}

/// A caller may not look at the status: the measures keep the first reason.
template <class Part>
fast_status adding(fast_measures* measures, const char* name, const Part& part) {
  return c::guarded([&] {
    c::require_given(measures, "measures");
    try {
      c::require_given(name, "a measure's name");
      part();
    } catch (...) {
      if (!measures->refused) measures->refused = std::current_exception();
      throw;
    }
  });
}

}  // namespace

extern "C" {

fast_status fast_measures_add(fast_measures* measures, const char* name, fast_measure_form form,
                              double sum, double count) {
  return adding(measures, name, [&] {
    require(!(count < 0), ErrorKind::argument,
            "fast_measures_add: \"{}\" over a count of {}; 0 or more is required", name, count);
    const Form kind = form_of(form);
    measure_of(*measures, name, [&] {
      return Measure{name, kind, {0, 0}};
    }).add({name, kind, {sum, count}});
  });
}

fast_status fast_measures_add_score(fast_measures* measures, const char* name, double score,
                                    int is_class_1) {
  return adding(measures, name, [&] {
    Measure& area = measure_of(*measures, name, [&] { return empty_area(name); });
    require(area.form == Form::area, ErrorKind::argument,
            "fast_measures_add_score: \"{}\" has been added by fast_measures_add; choose another "
            "name",
            name);
    const std::size_t bin = std::isnan(score) ? 0 : score_bin(score);
    // A NaN makes the area NaN.
    area.sums[bin + (is_class_1 != 0 ? score_bins : 0)] += std::isnan(score) ? score : 1;
  });
}

}  // extern "C"

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
  require(contains(sizes, size), ErrorKind::argument,
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
