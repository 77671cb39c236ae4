#include "pipeline/pipeline.hpp"

#include <algorithm>

using namespace fast;

namespace pipeline {

Pipeline::Pipeline(const mpi::Communicator& replica, const Plan& plan, std::uint64_t seed,
                   const nn::OptimizerSpec& optimizer, Seconds deadline)
    : plan_(plan),
      index_(static_cast<std::size_t>(replica.rank())),
      deadline_(deadline),
      messages_(replica, Deadline(deadline)),
      stage_(plan.model, plan.stages.at(index_), seed, in_flight()),
      optimizer_(optimizer, stage_.parameters().size()) {}

std::size_t Pipeline::parts_of(const Batch& batch) const {
  return std::min(batch.count(), plan_.micro_batches);
}

Batch Pipeline::part_at(const Batch& batch, std::size_t part) const {
  const std::size_t samples = batch.count(), parts = parts_of(batch);
  const std::size_t first = samples * part / parts;
  return nn::part_of(batch, first, samples * (part + 1) / parts - first);
}

std::span<const float> Pipeline::receive(int from, std::size_t values) {
  received_.resize(values);
  messages_.receive(from, std::as_writable_bytes(std::span(received_)), Deadline(deadline_));
  return received_;
}

void Pipeline::send(int to, std::span<const float> values) {
  messages_.send(to, std::as_bytes(values));
}

/// The forward pass of this stage; its outputs go to the next one.
std::span<const float> Pipeline::run(const Batch& part, std::size_t micro_batch, bool training) {
  const std::span<const float> inputs =
      stage_.is_first() ? part.inputs
                        : receive(messages_.rank() - 1, part.count() * stage_.input_size());
  const std::span<const float> outputs = stage_.forward(micro_batch, inputs, training);
  if (!stage_.is_last()) send(messages_.rank() + 1, outputs);
  return outputs;
}

void Pipeline::forward(const Batch& batch, std::size_t part) {
  run(part_at(batch, part), part % in_flight(), true);
}

void Pipeline::backward(const Batch& batch, std::size_t part) {
  const Batch samples = part_at(batch, part);
  const std::size_t micro_batch = part % in_flight();
  const double whole = static_cast<double>(batch.count());
  std::span<const float> gradients;
  if (stage_.is_last()) {
    const double mean =
        stage_.loss(micro_batch, samples).sum / static_cast<double>(samples.count());
    loss_ += static_cast<double>(samples.count()) / whole * mean;
    gradients = stage_.loss_gradients();
  } else {
    gradients = receive(messages_.rank() + 1, samples.count() * stage_.output_size());
  }
  const std::span<const float> before =
      stage_.backward(micro_batch, gradients, static_cast<double>(samples.count()) / whole);
  if (!stage_.is_first()) send(messages_.rank() - 1, before);
}

/// "One forward, one backward": a stage begins as many micro-batches as there are stages from it
/// to the end. Then each backward pass makes room for one forward pass.
std::optional<double> Pipeline::train(const Batch& batch) {
  const std::size_t parts = parts_of(batch), begun = std::min(parts, in_flight());
  loss_ = 0;
  stage_.begin_gradients();
  for (std::size_t part = 0; part < begun; ++part) forward(batch, part);
  for (std::size_t part = 0; part < parts; ++part) {
    backward(batch, part);
    if (part + begun < parts) forward(batch, part + begun);
  }
  optimizer_.step(stage_.parameters(), stage_.gradients());
  if (stage_.is_last()) return loss_;
  return std::nullopt;
}

std::optional<nn::LossResult> Pipeline::evaluate(const Batch& batch) {
  nn::LossResult result;
  for (std::size_t part = 0; part < parts_of(batch); ++part) {
    const Batch samples = part_at(batch, part);
    run(samples, 0, false);
    if (stage_.is_last()) result.add(stage_.loss(0, samples));
  }
  if (stage_.is_last()) return result;
  return std::nullopt;
}

std::vector<TensorView> Pipeline::tensors() {
  std::vector<TensorView> all = stage_.parameter_views();
  for (TensorView& buffer : stage_.buffer_views()) all.push_back(std::move(buffer));
  return all;
}

namespace {

std::size_t elements(const TensorView& view) {
  return static_cast<std::size_t>(view.element_count());
}

}  // namespace

std::vector<TensorView> Pipeline::gather(const std::vector<TensorView>& own,
                                         std::deque<std::vector<float>>& memory) {
  if (!stage_.is_first()) {
    for (const TensorView& view : own)
      send(0, {static_cast<const float*>(view.data), elements(view)});
    return {};
  }
  std::vector<TensorView> parameters, buffers;
  for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
    nn::Stage<float> shapes(plan_.model, plan_.stages[s], 0);
    std::vector<TensorView> views = shapes.parameter_views();
    const std::size_t count = views.size();
    for (TensorView& buffer : shapes.buffer_views()) views.push_back(std::move(buffer));
    for (std::size_t v = 0; v < views.size(); ++v) {
      std::vector<float>& values = memory.emplace_back(elements(views[v]));
      if (s > 0) {
        const auto found = receive(static_cast<int>(s), values.size());
        std::copy(found.begin(), found.end(), values.begin());
      } else {
        std::copy_n(static_cast<const float*>(own.at(v).data), values.size(), values.begin());
      }
      views[v].data = values.data();
      (v < count ? parameters : buffers).push_back(views[v]);
    }
  }
  parameters.insert(parameters.end(), buffers.begin(), buffers.end());
  return parameters;
}

}  // namespace pipeline
