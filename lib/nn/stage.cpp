#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/nn/stage.hpp>

#include "nn/checks.hpp"
#include "nn/draws.hpp"
#include "nn/sequence.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// Counted from 1, as nn::describe() does.
std::string text(LayerRange layers) { return fmt::format("{}..{}", layers.first + 1, layers.last); }

bool contains(LayerRange layers, const ParameterSpec& tensor) {
  return layers.first <= tensor.layer && tensor.layer < layers.last;
}

/// The tensors of these layers: a run of the model's list.
LayerRange tensors_of(LayerRange layers, const std::vector<ParameterSpec>& list) {
  LayerRange found;
  while (found.first < list.size() && list[found.first].layer < layers.first) ++found.first;
  found.last = found.first;
  while (found.last < list.size() && contains(layers, list[found.last])) ++found.last;
  return found;
}

template <class T>
std::vector<TensorView> views_of(LayerRange layers, const std::vector<ParameterSpec>& list, T* base,
                                 Role role) {
  const LayerRange tensors = tensors_of(layers, list);
  std::vector<TensorView> all;
  for (std::size_t p = tensors.first; p < tensors.last; ++p)
    all.push_back({list[p].name, base + (list[p].offset - list[tensors.first].offset),
                   list[p].shape, dtype_of<T>, role, Device{}});
  return all;
}

std::vector<LayerSpec> layers_of(const ModelSpec& model, LayerRange layers) {
  const auto begin = model.layers.begin();
  return {begin + static_cast<std::ptrdiff_t>(layers.first),
          begin + static_cast<std::ptrdiff_t>(layers.last)};
}

constexpr std::size_t alignment_bytes = 64;

/// In the layout of layers, in memory that is aligned as theirs.
template <class T>
void store(const Shape& shape, std::span<const T> rows, T* to, Index count) {
  if (shape.size() == 3)
    to_blocks(rows.data(), to, count, elements_of(shape));
  else
    std::copy(rows.begin(), rows.end(), to);
}

std::size_t size_of(const Shape& shape) { return static_cast<std::size_t>(elements_of(shape)); }

}  // namespace

std::vector<LayerRange> stages_of(const ModelSpec& model, std::span<const std::size_t> cuts) {
  std::vector<LayerRange> stages;
  std::size_t first = 0;
  for (const std::size_t cut : cuts) {
    require(cut > first && cut < model.layers.size(), ErrorKind::argument,
            "stages_of: a cut after {} layers; model {} has {} layers, cuts are increasing numbers "
            "from 1 to {}",
            cut, model.name, model.layers.size(), model.layers.size() - 1);
    stages.push_back({first, cut});
    first = cut;
  }
  stages.push_back({first, model.layers.size()});
  const std::vector<ParameterSpec> list = parameters(model);
  for (const LayerRange& stage : stages) {
    const LayerRange tensors = tensors_of(stage, list);
    require(tensors.first < tensors.last, ErrorKind::argument,
            "stages_of: layers {} of model {} have no parameters; choose other cuts", text(stage),
            model.name);
  }
  return stages;
}

/// The values between the two passes.
template <class T>
struct Stage<T>::MicroBatch {
  Sequence<T> layers;
  AlignedBuffer input{};   ///< as the layers take it
  AlignedBuffer output{};  ///< row-major, of images
  std::span<const T> outputs{};
  std::vector<std::uint64_t> noise{};
  Index count = 0;  ///< of samples; 0: none waits for backward()
};

template <class T>
Stage<T>::Stage(ModelSpec model, LayerRange layers, std::uint64_t seed, std::size_t micro_batches)
    : model_(std::move(model)), layers_(layers) {
  require_processor(processor_fits());
  require_logits(model_);
  const std::vector<Shape> all = shapes(model_);
  require(layers.first < layers.last && layers.last <= model_.layers.size(), ErrorKind::argument,
          "Stage: layers [{}, {}) of model {}, which has {} layers", layers.first, layers.last,
          model_.name, model_.layers.size());
  require(micro_batches > 0, ErrorKind::argument, "Stage: 0 micro-batches; at least 1 is required");
  input_ = all[layers.first];
  output_ = all[layers.last];
  const std::vector<ParameterSpec> list = nn::parameters(model_);
  const LayerRange tensors = tensors_of(layers, list);
  for (std::size_t p = tensors.first; p < tensors.last; ++p) count_ += list[p].count;
  require(count_ > 0, ErrorKind::argument, "Stage: layers {} of model {} have no parameters",
          text(layers), model_.name);
  shift_ = list[tensors.first].offset % (alignment_bytes / sizeof(T));
  const std::vector<LayerSpec> own = layers_of(model_, layers);
  has_noise_ = has_dropout(own);
  for (AlignedBuffer* buffer : {&parameters_, &gradients_, &part_})
    *buffer = AlignedBuffer((shift_ + count_) * sizeof(T));
  draw_initial(list, tensors.first, tensors.last, seed, at_offset(parameters_));
  for (std::size_t i = 0; i < micro_batches; ++i)
    micro_batches_.push_back(std::make_unique<MicroBatch>(MicroBatch{Sequence<T>(own, input_)}));
  buffers_ =
      AlignedBuffer(static_cast<std::size_t>(micro_batches_[0]->layers.buffer_count()) * sizeof(T));
  const std::vector<ParameterSpec> statistics = nn::buffers(model_);
  const LayerRange kept = tensors_of(layers, statistics);
  draw_initial(statistics, kept.first, kept.last, seed, buffers_.as<T>().data());
}

template <class T>
Stage<T>::Stage(Stage&&) noexcept = default;
template <class T>
Stage<T>& Stage<T>::operator=(Stage&&) noexcept = default;
template <class T>
Stage<T>::~Stage() = default;

template <class T>
std::size_t Stage<T>::input_size() const {
  return size_of(input_);
}
template <class T>
std::size_t Stage<T>::output_size() const {
  return size_of(output_);
}

template <class T>
std::vector<TensorView> Stage<T>::parameter_views() {
  return views_of(layers_, nn::parameters(model_), at_offset(parameters_), Role::parameter);
}

template <class T>
std::vector<TensorView> Stage<T>::buffer_views() {
  return views_of(layers_, nn::buffers(model_), buffers_.as<T>().data(), Role::buffer);
}

template <class T>
typename Stage<T>::MicroBatch& Stage<T>::at(std::size_t number) {
  require(number < micro_batches_.size(), ErrorKind::argument,
          "Stage: micro-batch {} was asked for; the stage holds {} (0..{}); construct it with more",
          number, micro_batches_.size(), micro_batches_.size() - 1);
  return *micro_batches_[number];
}

template <class T>
const T* Stage<T>::load(MicroBatch& micro_batch, std::span<const T> inputs) const {
  grow<T>(micro_batch.input, stored_elements<T>(input_, micro_batch.count));
  T* stored = micro_batch.input.template as<T>().data();
  store(input_, inputs, stored, micro_batch.count);
  return stored;
}

template <class T>
std::span<const T> Stage<T>::forward(std::size_t micro_batch, std::span<const T> inputs,
                                     bool training) {
  MicroBatch& values = at(micro_batch);
  require(!inputs.empty() && inputs.size() % input_size() == 0, ErrorKind::argument,
          "Stage: {} input values; a positive multiple of {} is required, for samples of shape {}",
          inputs.size(), input_size(), describe(input_));
  const std::size_t samples = inputs.size() / input_size();
  values.count = static_cast<Index>(samples);
  const bool noisy = training && has_noise_;
  if (noisy) draw_noise<T>(parameters(), inputs, samples, values.noise);
  const T* found = values.layers.forward(
      at_offset(parameters_), load(values, inputs),
      {values.count, training, buffers_.as<T>().data(), noisy ? values.noise.data() : nullptr});
  if (output_.size() == 3) {
    grow<T>(values.output, values.count * elements_of(output_));
    T* rows = values.output.template as<T>().data();
    from_blocks(found, rows, values.count, elements_of(output_));
    found = rows;
  }
  values.outputs = {found, samples * output_size()};
  if (!training) values.count = 0;
  return values.outputs;
}

template <class T>
LossResult Stage<T>::loss(std::size_t micro_batch, const Batch& batch) {
  const MicroBatch& values = at(micro_batch);
  require(is_last(), ErrorKind::argument, "Stage: layers {} of model {} have no loss; the last do",
          text(layers_), model_.name);
  require_answers(batch, model_, output_);
  require(batch.count() * output_size() == values.outputs.size(), ErrorKind::argument,
          "Stage: labels of {} samples, outputs of {}", batch.count(),
          values.outputs.size() / output_size());
  grow<T>(loss_memory_, static_cast<Index>(values.outputs.size()));
  loss_gradients_ = loss_memory_.as<T>().first(values.outputs.size());
  const bool evaluates = values.count == 0;
  return loss_of<T>(evaluates ? LossSpec{model_.loss.kind, model_.loss.delta} : model_.loss,
                    values.outputs, batch, loss_gradients_);
}

template <class T>
std::span<const T> Stage<T>::backward(std::size_t micro_batch, std::span<const T> output_gradients,
                                      double share) {
  MicroBatch& values = at(micro_batch);
  const Index count = std::exchange(values.count, 0);
  require(
      count > 0, ErrorKind::argument,
      "Stage: micro-batch {} has no forward pass in training to go back through; call forward() "
      "before",
      micro_batch);
  require(output_gradients.size() == values.outputs.size(), ErrorKind::argument,
          "Stage: {} gradients for {} outputs", output_gradients.size(), values.outputs.size());
  grow<T>(stored_gradients_, stored_elements<T>(output_, count));
  T* dy = stored_gradients_.as<T>().data();
  store(output_, output_gradients, dy, count);
  T* dx = nullptr;
  if (!is_first()) {
    grow<T>(input_gradients_, stored_elements<T>(input_, count));
    dx = input_gradients_.as<T>().data();
  }
  values.layers.backward(at_offset(parameters_), at_offset(part_), dy, dx, count);
  add_scaled(at_offset(gradients_), at_offset(part_), static_cast<T>(share), count_,
             std::exchange(fresh_, false));
  if (is_first()) return {};
  const std::size_t elements = static_cast<std::size_t>(count) * input_size();
  if (input_.size() != 3) return {dx, elements};
  grow<T>(rows_, static_cast<Index>(elements));
  from_blocks(dx, rows_.as<T>().data(), count, elements_of(input_));
  return {rows_.as<T>().data(), elements};
}

template class Stage<float>;
template class Stage<double>;

}  // namespace fast::nn
