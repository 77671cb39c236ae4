#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/cuda/accelerator.hpp>
#include <fast/nn/cuda/backend.hpp>
#include <fast/nn/cuda/optimizer.hpp>
#include <fast/nn/network.hpp>
#include <fast/worker/device_replica.hpp>
#include <optional>

#include "nn/checks.hpp"
#include "nn/parallel.hpp"

namespace fast::cuda {
namespace {

constexpr Seconds longest_wait{300};

/// Memory of the device and its mirror on the host.
class Mirror {
 public:
  Mirror() = default;
  explicit Mirror(std::span<float> device) : device_(device), host_(device.size_bytes()) {}
  std::span<float> host() const { return host_.as<float>(); }
  bool empty() const { return host_.size_bytes() == 0; }
  void up(const Stream& stream) const {
    copy(device_.data(), host_.data(), host_.size_bytes(), stream);
  }
  void down(const Stream& stream) const {
    copy(host_.data(), device_.data(), host_.size_bytes(), stream);
  }
  std::span<float> device() const { return device_; }

 private:
  std::span<float> device_;
  PinnedBuffer host_;
};

std::vector<TensorView> views(std::span<float> values, const std::vector<nn::ParameterSpec>& list,
                              Role role, Device device = {}) {
  std::vector<TensorView> all;
  for (const nn::ParameterSpec& p : list)
    all.push_back({p.name, values.data() + p.offset, p.shape, DType::f32, role, device});
  return all;
}

nn::BackendOptions valid(const nn::ModelSpec& spec, const nn::BackendOptions& options) {
  nn::require_valid(options);
  nn::require_logits(spec);
  return options;
}

class DeviceBackend final : public Backend, public DeviceReplica {
 public:
  DeviceBackend(nn::ModelSpec spec, std::uint64_t seed, const nn::BackendOptions& options,
                const NetworkOptions& network)
      : options_(valid(spec, options)),
        network_(spec, network),
        optimizer_(options.optimizer, network_.parameters().size(), network.device),
        weights_(network_.parameters()),
        buffers_(network_.buffers()),
        gradients_(network_.gradients()),
        sums_(options.accumulate > 1 ? network_.parameters().size_bytes() : 0, network.device) {
    nn::Network<float> initial(std::move(spec), seed);
    std::ranges::copy(initial.parameters(), weights_.host().begin());
    std::ranges::copy(initial.buffers(), buffers_.host().begin());
  }

  std::string name() const override { return "cuda"; }
  std::vector<TensorView> parameters() override {
    return all_views(weights_.host(), buffers_.host(), Device{});
  }

  double train(const Batch& batch, const GradientHook& hook) override {
    upload_mirror();
    if (state_shown_) {
      for (const Mirror& slot : state_) slot.up(stream());
      state_shown_ = false;
    }
    const double loss = step(batch, hook);
    if (mirrors_) download();
    settle();
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    upload_mirror();
    const nn::LossResult result = network_.evaluate(batch);
    return {result.sum, result.correct, result.measures};
  }

  std::optional<std::size_t> correct_in_step() override {
    return nn::classifies(network_.spec()) ? correct_ : std::nullopt;
  }
  std::optional<double> gradient_norm() override {
    if (!norm_ && correct_) {
      gradients_.down(stream());
      settle();
      norm_ = norm_of(gradients_.host());
    }
    return norm_;
  }

  bool takes_mixed_labels() const override {
    return network_.spec().loss.kind == nn::Loss::cross_entropy;
  }

  void set_learning_rate(double learning_rate) override {
    optimizer_.set_learning_rate(learning_rate);
  }

  std::vector<TensorView> optimizer_state() override {
    std::vector<TensorView> views = optimizer_.state();
    std::size_t slot = 0;
    for (TensorView& view : views) {
      if (view.device.kind == Device::Kind::host) continue;
      if (state_.size() == slot)
        state_.emplace_back(std::span(static_cast<float*>(view.data), view.element_count()));
      // Values written into the mirror and not yet uploaded are newer than those of the device.
      if (!state_shown_) state_[slot].down(stream());
      view.data = state_[slot++].host().data();
      view.device = {};
    }
    settle();
    state_shown_ = true;
    return views;
  }

  std::shared_ptr<Accelerator> accelerate() override {
    if (std::exchange(mirrors_, false)) upload();
    if (!accelerator_) accelerator_ = accelerator(stream(), longest_wait);
    return accelerator_;
  }
  std::vector<TensorView> device_parameters() override {
    return all_views(weights_.device(), buffers_.device(), {Device::Kind::cuda, stream().device()});
  }
  void download() override {
    weights_.down(stream());
    buffers_.down(stream());
    settle();
  }
  void upload() override {
    weights_.up(stream());
    buffers_.up(stream());
    settle();
  }
  void keep_mirror() override {
    download();
    mirrors_ = true;
  }

 private:
  std::vector<TensorView> all_views(std::span<float> weights, std::span<float> buffers,
                                    Device device) const {
    std::vector<TensorView> all =
        views(weights, nn::parameters(network_.spec()), Role::parameter, device);
    for (TensorView& view : views(buffers, nn::buffers(network_.spec()), Role::buffer, device))
      all.push_back(std::move(view));
    return all;
  }
  const Stream& stream() const { return network_.stream(); }
  void settle() const { stream().synchronize(Deadline(longest_wait)); }
  void upload_mirror() const {
    if (!mirrors_) return;
    weights_.up(stream());
    buffers_.up(stream());
  }

  double step(const Batch& batch, const GradientHook& hook) {
    const bool in_parts = options_.accumulate > 1 && batch.count() > 1;
    const bool changed = hook || options_.clip_norm > 0;
    norm_.reset();
    if (!in_parts && !changed) {
      const double loss = network_.train(batch, optimizer_);
      correct_ = network_.correct();
      return loss;
    }
    const double loss = in_parts ? accumulate(batch) : network_.loss_and_gradients(batch);
    if (!in_parts) correct_ = network_.correct();
    if (changed) change_gradients(hook);
    optimizer_.step(network_.parameters(), network_.gradients(), stream());
    return loss;
  }

  double accumulate(const Batch& batch) {
    const std::size_t samples = batch.count();
    const std::size_t parts = std::min(samples, static_cast<std::size_t>(options_.accumulate));
    const std::span<float> sums = sums_.as<float>();
    double loss = 0;
    std::size_t correct = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t first = samples * i / parts, count = samples * (i + 1) / parts - first;
      const double share = static_cast<double>(count) / static_cast<double>(samples);
      loss += share * network_.loss_and_gradients(nn::part_of(batch, first, count));
      correct += network_.correct();
      add_scaled(sums, network_.gradients(), static_cast<float>(share), i == 0, stream());
    }
    copy(network_.gradients().data(), sums.data(), sums.size_bytes(), stream());
    correct_ = correct;
    return loss;
  }

  void change_gradients(const GradientHook& hook) {
    gradients_.down(stream());
    settle();
    if (hook) hook(views(gradients_.host(), nn::parameters(network_.spec()), Role::parameter));
    if (options_.clip_norm > 0) clip(gradients_.host());
    gradients_.up(stream());
  }

  static double norm_of(std::span<const float> gradients) {
    double square = 0;
    for (const float grad : gradients)
      square += static_cast<double>(grad) * static_cast<double>(grad);
    return std::sqrt(square);
  }

  void clip(std::span<float> gradients) {
    norm_ = norm_of(gradients);
    if (!(*norm_ > options_.clip_norm)) return;
    const auto factor = static_cast<float>(options_.clip_norm / *norm_);
    for (float& grad : gradients) grad *= factor;
  }

  nn::BackendOptions options_;
  Network network_;
  Optimizer<float> optimizer_;
  Mirror weights_, buffers_, gradients_;
  DeviceBuffer sums_;
  std::vector<Mirror> state_;
  bool state_shown_ = false;  ///< the mirror is newer
  bool mirrors_ = true;
  std::optional<std::size_t> correct_;  ///< in the latest step; empty before the first
  std::optional<double> norm_;          ///< of its gradients before clipping, once computed
  std::shared_ptr<Accelerator> accelerator_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(nn::ModelSpec spec, std::uint64_t seed,
                                      nn::BackendOptions options, NetworkOptions network) {
  return std::make_unique<DeviceBackend>(std::move(spec), seed, options, network);
}

}  // namespace fast::cuda
