#include "train/training.hpp"

#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/data/synthetic.hpp>
#include <fast/exchange/local.hpp>
#include <fast/nn/backend.hpp>

namespace fast::testing {
namespace {

class DamagedSource final : public data::SampleSource {
 public:
  explicit DamagedSource(data::Dataset samples) : samples_(std::move(samples)) {}
  bool is_bytes() const override { return samples_.is_bytes(); }
  std::vector<std::size_t> shards() const override { return {samples_.size()}; }
  void read(std::size_t sample, std::span<std::byte> into) const override {
    require(sample % 8 != 0, ErrorKind::data, "sample {} is damaged", sample);
    samples_.copy(sample, into);
  }

 private:
  data::Dataset samples_;
};

}  // namespace

data::Splits made_up_data() {
  const data::Dataset all =
      data::synthetic_classification(train_samples + test_samples, {16}, classes, 7);
  return {all.slice(0, train_samples), all.slice(train_samples, test_samples), {}};
}

data::Dataset with_damage(const data::Dataset& samples) {
  std::vector<std::int32_t> labels(samples.labels().begin(), samples.labels().end());
  return {samples.name(), samples.sample_shape(), std::make_shared<DamagedSource>(samples),
          data::Targets{std::move(labels), {}, samples.classes()}};
}

train::TrainerOptions trainer_options() {
  train::TrainerOptions options;
  options.epochs = 3;
  options.batch_size = 16;
  options.progress = false;
  options.worker.deadline = Seconds(30);
  return options;
}

std::unique_ptr<Backend> small_backend() {
  return nn::make_backend<double>(nn::mlp({16, 24, classes}), 5);
}

Trained train_small(const Group& group, const TopologyRule& rule,
                    const train::TrainerOptions& options) {
  return train_small(group, rule, options, *small_backend());
}

Trained train_small(const Group& group, const TopologyRule& rule,
                    const train::TrainerOptions& options, Backend& backend) {
  Trained trained;
  trained.summary = train::train(group, rule, backend, made_up_data(), options);
  const ParameterLayout layout(backend.parameters());
  trained.mean_model.resize(layout.size_bytes() / sizeof(double));
  layout.gather(reinterpret_cast<std::byte*>(trained.mean_model.data()));
  return trained;
}

std::vector<Trained> train_four(const train::TrainerOptions& options, const TopologyRule& rule) {
  std::vector<Trained> all(4);
  local::run(4, [&](const Group& group) {
    all[static_cast<std::size_t>(group.rank())] = train_small(group, rule, options);
  });
  return all;
}

}  // namespace fast::testing
