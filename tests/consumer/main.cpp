// Three workers, threads of this process, learn made-up classes.
#include <cstdio>
#include <fast/data/synthetic.hpp>
#include <fast/fast.hpp>
#include <fast/nn/backend.hpp>
#include <fast/train/trainer.hpp>

int main() {
  const auto samples = fast::data::synthetic_classification(1200, {16}, 4, 1);
  const fast::data::Splits data{samples.slice(0, 960), samples.slice(960, 240), {}};
  fast::train::TrainerOptions options;
  options.progress = false;
  double accuracy = 0;
  fast::local::run(3, [&](const fast::Group& group) {
    const auto backend = fast::nn::make_backend<float>(fast::nn::mlp({16, 24, 4}), 1);
    const auto summary = fast::train::train(group, fast::stencil::ring(), *backend, data, options);
    if (group.rank() == 0) accuracy = summary.test_accuracy_mean_model;
  });
  std::printf("FAST %s: accuracy %.3f\n", std::string(fast::version()).c_str(), accuracy);
  return accuracy > 0.9 ? 0 : 1;
}
