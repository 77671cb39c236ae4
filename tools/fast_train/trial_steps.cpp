#include "fast_train/trial_steps.hpp"

#include <algorithm>
#include <fast/core/batch.hpp>
#include <fast/core/random.hpp>
#include <vector>

#include "fast_train/settings.hpp"
#include "nn/shape.hpp"

namespace fast_train {

using namespace fast;

namespace {

/// Memory for a batch.
struct RandomBatch {
  RandomBatch(const data::Dataset& data, std::size_t samples, bool are_tokens)
      : inputs(samples * data.sample_size()) {
    Rng rng(1);
    if (!are_tokens) {  // a model has a token 0
      for (float& value : inputs) value = static_cast<float>(rng.normal());
    }
    const std::size_t count = samples * data.target_size();
    if (data.targets().empty()) {
      labels.resize(count);
    } else {
      targets.resize(count);
    }
    batch = {inputs, labels, data.sample_shape(), targets, data.target_shape()};
  }
  RandomBatch(const RandomBatch&) = delete;
  RandomBatch& operator=(const RandomBatch&) = delete;

  std::vector<float> inputs, targets;
  std::vector<std::int32_t> labels;
  Batch batch;
};

/// A round's steps: of --step-samples each, if that is given.
void train_round(Backend& backend, const Batch& batch, std::size_t step_samples) {
  const std::size_t samples = batch.count(), each = step_samples == 0 ? samples : step_samples;
  for (std::size_t first = 0; first < samples; first += each)
    backend.train(part_of(batch, first, std::min(each, samples - first)));
}

}  // namespace

tools::StepTimes trial_steps(const Options& o, const nn::ModelSpec& spec, const data::Dataset& data,
                             const Group& group, Seconds budget) {
  const backends::OnDevice replica = backend_of(o, spec, group);
  const auto samples = o.batch_size * static_cast<std::size_t>(o.accumulate);
  const bool are_tokens = nn::tokens_of(spec) > 0;
  const RandomBatch random(data, samples, are_tokens);
  const tools::StepTimes times = tools::time_steps(
      [&] { train_round(*replica.backend, random.batch, o.trainer.step_samples); }, budget);
  const double paced_s = o.trainer.pace.step_s;
  return times.mean_s < paced_s ? tools::StepTimes{paced_s, 0} : times;
}

}  // namespace fast_train
