#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/nn/backend.hpp>
#include <optional>

#include "nn/checks.hpp"
#include "nn/kernels/kernels.hpp"
#include "nn/parallel.hpp"

namespace fast::nn {

void require_valid(const BackendOptions& o) {
  require(std::isfinite(o.clip_norm) && o.clip_norm >= 0, ErrorKind::argument,
          "nn: clipping to a norm of {}; a positive number is required, or 0 for none",
          o.clip_norm);
  require(o.threads >= 1, ErrorKind::argument, "nn: {} threads; at least 1 is required", o.threads);
  require(o.accumulate >= 1, ErrorKind::argument, "nn: a batch in {} parts; at least 1 is required",
          o.accumulate);
}

namespace {

template <class T>
class NetworkBackend final : public Backend, private SlotStep {
 public:
  NetworkBackend(ModelSpec spec, std::uint64_t seed, const BackendOptions& options)
      : options_(options),
        replicas_(std::move(spec), seed, options.threads),
        network_(replicas_.first()),
        classifies_(classifies(network_.spec())),
        optimizer_(options.optimizer, network_.parameter_count()),
        sums_(options.accumulate > 1 ? network_.parameter_count() * sizeof(T) : 0) {
    require_valid(options);
    require_logits(network_.spec());
  }

  std::string name() const override { return "nn"; }
  std::vector<TensorView> parameters() override {
    std::vector<TensorView> views = network_.parameter_views();
    for (TensorView& buffer : network_.buffer_views()) views.push_back(std::move(buffer));
    return views;
  }

  double train(const Batch& batch, const GradientHook& hook) override {
    const double loss = gradients_of(batch, hook);
    optimizer_.step(network_.parameters(), network_.gradients());
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    const LossResult result = replicas_.evaluate(batch);
    return {result.sum, result.correct, result.measures};
  }

  void set_learning_rate(double learning_rate) override {
    optimizer_.set_learning_rate(learning_rate);
  }

  std::vector<TensorView> optimizer_state() override { return optimizer_.state(); }

  std::optional<std::size_t> correct_in_step() override {
    return classifies_ ? correct_ : std::nullopt;
  }
  std::optional<double> gradient_norm() override {
    if (!norm_ && correct_) norm_ = norm_of_gradients();
    return norm_;
  }

  bool takes_mixed_labels() const override {
    return network_.spec().loss.kind == Loss::cross_entropy;
  }

  SlotStep* in_slots() override { return network_.buffers().empty() ? this : nullptr; }

 private:
  double find_gradients(const void* weights, const Batch& batch) override {
    T* const own = network_.parameters().data();
    network_.set_parameter_base(const_cast<T*>(static_cast<const T*>(weights)));
    const double loss = gradients_of(batch, {});
    network_.set_parameter_base(own);
    optimizer_.begin_step();
    return loss;
  }
  void add_step(std::size_t first, void* weights, std::size_t count) override {
    optimizer_.add_delta(first, {static_cast<T*>(weights), count},
                         network_.gradients().subspan(first, count));
  }

  double gradients_of(const Batch& batch, const GradientHook& hook) {
    const double loss =
        options_.accumulate > 1 && batch.count() > 1 ? accumulate(batch) : step_on(batch);
    if (hook) hook(network_.gradient_views());
    norm_.reset();
    if (options_.clip_norm > 0) clip();
    return loss;
  }

  /// Correct samples are counted over the parts of a batch.
  double step_on(const Batch& part, std::size_t correct_before = 0) {
    const double loss = replicas_.loss_and_gradients(part);
    correct_ = correct_before + replicas_.correct();
    return loss;
  }

  double accumulate(const Batch& batch) {
    const std::size_t samples = batch.count();
    const std::size_t parts = std::min(samples, static_cast<std::size_t>(options_.accumulate));
    const std::span<T> gradients = network_.gradients();
    T* sums = sums_.as<T>().data();
    double loss = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t first = samples * i / parts, count = samples * (i + 1) / parts - first;
      const double share = static_cast<double>(count) / static_cast<double>(samples);
      loss += share * step_on(part_of(batch, first, count), i == 0 ? 0 : *correct_);
      add_scaled(sums, gradients.data(), static_cast<T>(share), gradients.size(), i == 0);
    }
    std::copy_n(sums, gradients.size(), gradients.begin());
    return loss;
  }

  double norm_of_gradients() {
    const std::span<const T> gradients = network_.gradients();
    return std::sqrt(sum_of_squares(gradients.data(), gradients.size()));
  }

  void clip() {
    const std::span<T> gradients = network_.gradients();
    norm_ = norm_of_gradients();
    if (*norm_ > options_.clip_norm)
      scale(gradients.data(), static_cast<T>(options_.clip_norm / *norm_), gradients.size());
  }

  BackendOptions options_;
  ParallelNetwork<T> replicas_;
  Network<T>& network_;
  bool classifies_;
  Optimizer<T> optimizer_;
  AlignedBuffer sums_;
  std::optional<std::size_t> correct_;  ///< in the latest step; empty before the first
  std::optional<double> norm_;          ///< of its gradients before clipping, once computed
};

}  // namespace

template <class T>
std::unique_ptr<Backend> make_backend(ModelSpec spec, std::uint64_t seed, BackendOptions options) {
  return std::make_unique<NetworkBackend<T>>(std::move(spec), seed, options);
}

template std::unique_ptr<Backend> make_backend<float>(ModelSpec, std::uint64_t, BackendOptions);
template std::unique_ptr<Backend> make_backend<double>(ModelSpec, std::uint64_t, BackendOptions);

}  // namespace fast::nn
