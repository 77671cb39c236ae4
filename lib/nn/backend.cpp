#include <fast/nn/backend.hpp>
#include <fast/nn/network.hpp>

namespace fast::nn {
namespace {

template <class T>
class NetworkBackend final : public Backend {
 public:
  NetworkBackend(ModelSpec spec, std::uint64_t seed, SgdOptions options)
      : network_(std::move(spec), seed), sgd_(options, network_.parameter_count()) {}

  std::string name() const override { return "nn"; }
  std::vector<TensorView> parameters() override { return network_.parameter_views(); }

  double train(const Batch& batch, const GradientHook& hook) override {
    const double loss = network_.loss_and_gradients(batch);
    if (hook) hook(network_.gradient_views());
    sgd_.step(network_.parameters(), network_.gradients());
    return loss;
  }

  Evaluation evaluate(const Batch& batch) override {
    const LossResult result = network_.evaluate(batch);
    return {result.sum, result.correct};
  }

  void set_learning_rate(double learning_rate) override { sgd_.set_learning_rate(learning_rate); }

  std::vector<TensorView> optimizer_state() override {
    if (sgd_.momentum().empty()) return {};
    return {view_of("momentum", sgd_.momentum(), Role::buffer)};
  }

 private:
  Network<T> network_;
  Sgd<T> sgd_;
};

}  // namespace

template <class T>
std::unique_ptr<Backend> make_backend(ModelSpec spec, std::uint64_t seed, SgdOptions options) {
  return std::make_unique<NetworkBackend<T>>(std::move(spec), seed, options);
}

template std::unique_ptr<Backend> make_backend<float>(ModelSpec, std::uint64_t, SgdOptions);
template std::unique_ptr<Backend> make_backend<double>(ModelSpec, std::uint64_t, SgdOptions);

}  // namespace fast::nn
