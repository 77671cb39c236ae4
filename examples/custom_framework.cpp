// A framework that the library knows nothing of, and the two ways to train it: by a Worker round a
// loop of one's own, and by an adapter for the Trainer. Copy Adapter and fill in your framework's
// calls.
//   custom_framework                  workers are threads of this process
//   custom_framework --check          proves the adapter
//   mpiexec -n 4 custom_framework     workers are MPI ranks
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fast/backend/backend.hpp>
#include <fast/core/random.hpp>
#include <fast/fast.hpp>
#include <fast/testing/conformance.hpp>
#include <string>
#include <vector>

namespace mine {  // the framework: softmax regression, in plain loops

struct Model {
  std::size_t inputs, classes;
  std::vector<float> weights, biases, weight_gradients, bias_gradients, outputs;

  Model(std::size_t inputs_, std::size_t classes_, std::uint64_t seed)
      : inputs(inputs_), classes(classes_), weights(inputs * classes), biases(classes) {
    fast::Rng rng(seed);
    for (float& weight : weights) weight = 0.1F * static_cast<float>(rng.normal());
    weight_gradients.resize(weights.size());
    bias_gradients.resize(biases.size());
    outputs.resize(classes);
  }

  /// Fills outputs with probabilities; returns the loss.
  double forward(const float* x, std::size_t label) {
    float largest = -INFINITY, sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      outputs[c] = biases[c];
      for (std::size_t i = 0; i < inputs; ++i) outputs[c] += weights[c * inputs + i] * x[i];
      largest = std::max(largest, outputs[c]);
    }
    for (float& output : outputs) sum += output = std::exp(output - largest);
    for (float& output : outputs) output /= sum;
    return -std::log(std::max(outputs[label], 1e-30F));
  }

  void backward(const float* x, std::size_t label, float share) {
    for (std::size_t c = 0; c < classes; ++c) {
      const float grad = share * (outputs[c] - (c == label ? 1.0F : 0.0F));
      bias_gradients[c] += grad;
      for (std::size_t i = 0; i < inputs; ++i) weight_gradients[c * inputs + i] += grad * x[i];
    }
  }

  void zero_gradients() {
    std::fill(weight_gradients.begin(), weight_gradients.end(), 0.0F);
    std::fill(bias_gradients.begin(), bias_gradients.end(), 0.0F);
  }

  void step(float rate) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * weight_gradients[i];
    for (std::size_t c = 0; c < classes; ++c) biases[c] -= rate * bias_gradients[c];
  }
};

}  // namespace mine

namespace {

class Adapter final : public fast::Backend {
 public:
  Adapter(std::size_t inputs, std::size_t classes, std::uint64_t seed)
      : model_(inputs, classes, seed) {}

  std::string name() const override { return "mine"; }

  std::vector<fast::TensorView> parameters() override {
    return {fast::view_of("weights", std::span(model_.weights)),
            fast::view_of("biases", std::span(model_.biases))};
  }

  double train(const fast::Batch& batch, const fast::GradientHook& hook) override {
    check(batch);
    model_.zero_gradients();
    double loss = 0;
    for (std::size_t i = 0; i < batch.count(); ++i) {
      loss += model_.forward(sample(batch, i), label(batch, i));
      model_.backward(sample(batch, i), label(batch, i), 1.0F / static_cast<float>(batch.count()));
    }
    if (hook)
      hook({fast::view_of("weights", std::span(model_.weight_gradients)),
            fast::view_of("biases", std::span(model_.bias_gradients))});
    model_.step(rate_);
    return loss / static_cast<double>(batch.count());
  }

  fast::Evaluation evaluate(const fast::Batch& batch) override {
    check(batch);
    fast::Evaluation result;
    for (std::size_t i = 0; i < batch.count(); ++i) {
      result.loss_sum += model_.forward(sample(batch, i), label(batch, i));
      const auto best = std::max_element(model_.outputs.begin(), model_.outputs.end());
      result.correct += best - model_.outputs.begin() == batch.labels[i] ? 1 : 0;
    }
    return result;
  }

  void set_learning_rate(double rate) override { rate_ = static_cast<float>(rate); }

 private:
  void check(const fast::Batch& batch) const {
    fast::require(batch.count() > 0 && batch.inputs.size() == batch.count() * model_.inputs,
                  fast::ErrorKind::argument, "mine: {} values of {} samples; {} each are required",
                  batch.inputs.size(), batch.count(), model_.inputs);
    for (const std::int32_t label : batch.labels)
      fast::require(label >= 0 && static_cast<std::size_t>(label) < model_.classes,
                    fast::ErrorKind::argument, "mine: label {}; 0..{} are required", label,
                    model_.classes - 1);
  }
  const float* sample(const fast::Batch& batch, std::size_t i) const {
    return batch.inputs.data() + i * model_.inputs;
  }
  static std::size_t label(const fast::Batch& batch, std::size_t i) {
    return static_cast<std::size_t>(batch.labels[i]);
  }

  mine::Model model_;
  float rate_ = 0.05F;
};

/// No adapter: a Worker round a loop of one's own, which tells points left of a line from others.
void train_own_loop(const fast::Group& workers) {
  mine::Model model(2, 2, 1);
  fast::Worker worker(workers, fast::stencil::torus2d(),
                      {fast::view_of("weights", std::span(model.weights)),
                       fast::view_of("biases", std::span(model.biases))});
  fast::Rng rng(fast::mix_seed(7, static_cast<std::uint64_t>(workers.rank())));
  const auto draw = [&](float* x) {
    x[0] = static_cast<float>(rng.uniform(-1, 1));
    x[1] = static_cast<float>(rng.uniform(-1, 1));
    return static_cast<std::size_t>(x[0] + 2 * x[1] > 0.5F);
  };
  for (int step = 0; step < 500; ++step) {
    worker.step([&] {
      float x[2];
      const std::size_t label = draw(x);
      model.zero_gradients();
      const double loss = model.forward(x, label);
      model.backward(x, label, 1);
      model.step(0.5F);
      return loss;
    });
  }
  worker.await_finish();
  int correct = 0;
  for (int i = 0; i < 1000; ++i) {
    float x[2];
    const std::size_t label = draw(x);
    model.forward(x, label);
    correct += (model.outputs[1] > model.outputs[0]) == (label == 1) ? 1 : 0;
  }
  if (worker.rank() == 0)
    std::printf("%d workers tell %.1f %% of points right; they differ by %.4f\n", worker.size(),
                correct / 10.0, worker.consensus_distance());
}

int prove_adapter() {
  const auto report = fast::testing::check_backend(
      [](std::uint64_t seed) { return std::make_unique<Adapter>(16, 4, seed); });
  std::fputs(report.to_text().c_str(), stdout);
  return report.passed() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--check") return prove_adapter();
  return fast::mpi::run(argc, argv, [](const fast::mpi::Communicator& world) {
    if (world.size() > 1) {
      train_own_loop(fast::Group(world));
    } else {
      fast::local::run(4, train_own_loop);
    }
    return 0;
  });
}
