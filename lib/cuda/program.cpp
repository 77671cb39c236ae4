#include "cuda/program.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <memory>
#include <numeric>

#include "cuda/program_memory.hpp"

namespace fast::cuda {
namespace {

using nn::Shape;

Index elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}
Index area_of(const Shape& image) { return image[1] * image[2]; }

/// Enough threads for a device, rows enough for each.
Shares shares_of(Index rows, Index columns) {
  const Index most = std::max(Index{1}, Index{65536} / columns);
  return {rows, columns, std::clamp(rows / 32, Index{1}, std::min(most, Index{512}))};
}

[[noreturn]] void refuse_recurrent() {
  fail(ErrorKind::argument,
       "cuda: recurrent layers have no device form; choose another model, or run on the CPU");
}

[[noreturn]] void refuse_group_norm() {
  fail(ErrorKind::argument,
       "cuda: group normalization has no device form; choose another model, or run on the CPU");
}

using Values = std::shared_ptr<float>;
/// From the slopes of a layer's outputs to those of its inputs; null unless they are wanted.
using Backward = std::function<Values(const Values& dy, bool wanted)>;

struct Stage {
  Backward backward;
  bool trained;
};

class Builder {
 public:
  Builder(Index samples, bool training, const ModelMemory& model, const Allocate& allocate)
      : samples_(samples), training_(training), model_(model), memory_(allocate) {}

  Program build(const nn::ModelSpec& spec);

 private:
  struct Made {
    Values y;
    Backward backward;
    bool trained = false;
  };
  struct Chain {
    Values y;
    std::vector<Stage> stages;
    bool trained() const {
      return std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return s.trained; });
    }
  };

  Chain through(const std::vector<nn::LayerSpec>& layers, const Shape& input, Values x);
  Values back(const Chain& chain, Values dy, bool wanted);

  Made layer(const nn::Dense& dense, const Shape& in, const Values& x, bool relu);
  Made layer(const nn::Conv2d& conv, const Shape& in, const Values& x, bool relu);
  Made layer(const nn::BatchNorm& norm, const Shape& in, const Values& x, bool relu);
  Made layer(const nn::GroupNorm&, const Shape&, const Values&, bool) { refuse_group_norm(); }
  Made layer(const nn::Lstm&, const Shape&, const Values&, bool) { refuse_recurrent(); }
  Made layer(const nn::Relu&, const Shape& in, const Values& x, bool);
  Made layer(const nn::MaxPool& pool, const Shape& in, const Values& x, bool);
  Made layer(const nn::Flatten&, const Shape& in, const Values& x, bool);
  Made layer(const nn::GlobalAveragePool&, const Shape& in, const Values& x, bool);
  Made layer(const nn::Residual& residual, const Shape& in, const Values& x, bool relu);

  Values values(Index elements) { return memory_.take<float>(elements); }
  /// The next parameters of the flat vector; gradients lie at the same places.
  Index parameters(Index count) { return std::exchange(parameter_, parameter_ + count); }
  const float* weights(Index place) const { return model_.parameters + place; }
  float* gradients(Index place) const { return model_.gradients + place; }
  void add(const Work& work) { works_.push_back(work); }
  void add_column_sums(const float* x, Index rows, Index columns, float* sums);
  Values rectified(const Values& y, const Values& dy, Index count, bool relu);
  Values swapped(const float* from, Index outer, Index rows, Index columns);

  Index samples_;
  bool training_;
  ModelMemory model_;
  ProgramMemory memory_;
  std::vector<Work> works_;
  Index parameter_ = 0, buffer_ = 0;
};

void Builder::add_column_sums(const float* x, Index rows, Index columns, float* sums) {
  const Shares shares = shares_of(rows, columns);
  const Values parts = values(shares.size());
  add(ColumnShares{x, parts.get(), shares});
  add(ColumnTotals{parts.get(), sums, shares});
}

/// What is left of slopes before a ReLU that gave y; dy itself without one.
Values Builder::rectified(const Values& y, const Values& dy, Index count, bool relu) {
  if (!relu) return dy;
  Values slopes = values(count);
  add(RectifySlopes{y.get(), dy.get(), slopes.get(), count});
  return slopes;
}

Values Builder::swapped(const float* from, Index outer, Index rows, Index columns) {
  Values to = values(outer * rows * columns);
  add(SwapLast{from, to.get(), outer, rows, columns});
  return to;
}

Builder::Made Builder::layer(const nn::Dense& dense, const Shape& in, const Values& x, bool relu) {
  const Index inputs = in[0], units = dense.units, count = samples_;
  const Index w = parameters(units * inputs), b = parameters(units);
  const Values y = values(count * units);
  add(MatrixProduct{units, count, inputs, false, false, weights(w), x.get(), y.get(), weights(b),
                    relu});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const Values slopes = rectified(y, dy, count * units, relu);
    add(MatrixProduct{inputs, units, count, true, true, x.get(), slopes.get(), gradients(w)});
    add_column_sums(slopes.get(), count, units, gradients(b));
    if (!wanted) return nullptr;
    Values dx = values(count * inputs);
    add(MatrixProduct{inputs, count, units, true, false, weights(w), slopes.get(), dx.get()});
    return dx;
  };
  return {y, backward, true};
}

Builder::Made Builder::layer(const nn::Conv2d& conv, const Shape& in, const Values& x, bool relu) {
  const Shape out = nn::shapes_through({conv}, in)[1];
  const ConvolutionShape shape{samples_, in[0],  in[1],       in[2],       out[0],
                               out[1],   out[2], conv.kernel, conv.stride, conv.padding};
  const Index filters = conv.channels, window = conv.kernel * conv.kernel;
  const Index in_count = samples_ * elements_of(in), out_count = samples_ * elements_of(out);
  const Index count = filters * in[0] * window, w = parameters(count);
  const Index b = conv.bias ? parameters(filters) : -1;
  // [channels] last and before is the same, and the place is one that fast kernels take.
  const bool as_stored = (window == 1 || in[0] == 1) && w % 4 == 0;
  const auto kernels = [=, this]() -> Values {
    return as_stored ? nullptr : swapped(weights(w), filters, in[0], window);
  };
  const auto place = [=, this](const Values& v) { return v ? v.get() : weights(w); };
  const Values packed = kernels(), y = values(out_count);
  add(Convolution{Convolution::Kind::forward, shape, x.get(), place(packed), y.get()});
  if (conv.bias) add(AddBias{y.get(), weights(b), filters, out_count, relu});
  if (!conv.bias && relu) add(Rectify{y.get(), y.get(), out_count});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const Values slopes = rectified(y, dy, out_count, relu);
    const Values own = as_stored ? nullptr : values(count);
    add(Convolution{Convolution::Kind::filter_slopes, shape, x.get(), slopes.get(),
                    own ? own.get() : gradients(w)});
    if (own) add(SwapLast{own.get(), gradients(w), filters, window, in[0]});
    if (conv.bias) add_column_sums(slopes.get(), out_count / filters, filters, gradients(b));
    if (!wanted) return nullptr;
    Values dx = values(in_count);
    add(Convolution{Convolution::Kind::input_slopes, shape, slopes.get(), place(packed), dx.get()});
    return dx;
  };
  return {y, backward, true};
}

Builder::Made Builder::layer(const nn::BatchNorm& norm, const Shape& in, const Values& x,
                             bool relu) {
  const Index channels = in[0], rows = samples_ * area_of(in), count = rows * channels;
  const Index w = parameters(channels), b = parameters(channels);
  float* running_mean = model_.buffers + std::exchange(buffer_, buffer_ + 2 * channels);
  float* running_variance = running_mean + channels;
  const auto epsilon = static_cast<float>(norm.epsilon);
  const Values y = values(count), reciprocal = values(channels);
  const Shares shares = shares_of(rows, channels);
  if (!training_) {
    add(Reciprocals{running_variance, reciprocal.get(), channels, epsilon});
    add(Normalize{x.get(), y.get(), running_mean, reciprocal.get(), weights(w), weights(b),
                  channels, count, relu});
    return {y, nullptr, true};
  }
  const Values mean = values(channels), means = values(shares.size()),
               squares = values(shares.size());
  add(MomentShares{x.get(), means.get(), squares.get(), shares});
  add(MomentTotals{means.get(), squares.get(), mean.get(), reciprocal.get(), running_mean,
                   running_variance, shares, static_cast<float>(norm.momentum), epsilon});
  add(Normalize{x.get(), y.get(), mean.get(), reciprocal.get(), weights(w), weights(b), channels,
                count, relu});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const float* after = relu ? y.get() : nullptr;
    const Values dbias = values(shares.size()), dweight = values(shares.size());
    add(NormalizeShares{x.get(), after, dy.get(), mean.get(), reciprocal.get(), dbias.get(),
                        dweight.get(), shares});
    add(ColumnTotals{dbias.get(), gradients(b), shares});
    add(ColumnTotals{dweight.get(), gradients(w), shares});
    if (!wanted) return nullptr;
    Values dx = values(count);
    add(NormalizeSlopes{x.get(), after, dy.get(), mean.get(), reciprocal.get(), weights(w),
                        gradients(b), gradients(w), dx.get(), channels, rows});
    return dx;
  };
  return {y, backward, true};
}

Builder::Made Builder::layer(const nn::Relu&, const Shape& in, const Values& x, bool) {
  const Index count = samples_ * elements_of(in);
  const Values y = values(count);
  add(Rectify{x.get(), y.get(), count});
  return {y, [=, this](const Values& dy, bool wanted) {
            return wanted ? rectified(y, dy, count, true) : nullptr;
          }};
}

Builder::Made Builder::layer(const nn::MaxPool& pool, const Shape& in, const Values& x, bool) {
  const Shape out = nn::shapes_through({pool}, in)[1];
  const PoolShape shape{samples_, in[1],     in[2],       in[0],       out[1],
                        out[2],   pool.size, pool.stride, pool.padding};
  const Values y = values(samples_ * elements_of(out));
  const auto places = memory_.take<std::int32_t>(samples_ * elements_of(out));
  add(PoolMax{x.get(), y.get(), places.get(), shape});
  return {y, [=, this](const Values& dy, bool wanted) -> Values {
            if (!wanted) return nullptr;
            Values dx = values(samples_ * elements_of(in));
            add(PoolMaxSlopes{dy.get(), places.get(), dx.get(), shape});
            return dx;
          }};
}

Builder::Made Builder::layer(const nn::Flatten&, const Shape& in, const Values& x, bool) {
  if (in.size() == 1 || area_of(in) == 1 || in[0] == 1)
    return {x, [](const Values& dy, bool wanted) { return wanted ? dy : nullptr; }};
  return {swapped(x.get(), samples_, area_of(in), in[0]),
          [=, this](const Values& dy, bool wanted) -> Values {
            return wanted ? swapped(dy.get(), samples_, in[0], area_of(in)) : nullptr;
          }};
}

Builder::Made Builder::layer(const nn::GlobalAveragePool&, const Shape& in, const Values& x, bool) {
  const Values y = values(samples_ * in[0]);
  add(PoolMean{x.get(), y.get(), samples_, area_of(in), in[0]});
  return {y, [=, this](const Values& dy, bool wanted) -> Values {
            if (!wanted) return nullptr;
            Values dx = values(samples_ * elements_of(in));
            add(PoolMeanSlopes{dy.get(), dx.get(), samples_, area_of(in), in[0]});
            return dx;
          }};
}

Builder::Made Builder::layer(const nn::Residual& residual, const Shape& in, const Values& x,
                             bool relu) {
  const Index out_count = samples_ * elements_of(nn::shapes_through(residual.body, in).back());
  const Index in_count = samples_ * elements_of(in);
  const auto body = std::make_shared<Chain>(through(residual.body, in, x));
  const auto shortcut = std::make_shared<Chain>(through(residual.shortcut, in, x));
  const Values y = values(out_count);
  add(Add{body->y.get(), shortcut->y.get(), y.get(), out_count, relu});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const Values slopes = rectified(y, dy, out_count, relu);
    const Values through_body = back(*body, slopes, wanted);
    const Values past_it = back(*shortcut, slopes, wanted);
    if (!wanted) return nullptr;
    Values dx = values(in_count);
    add(Add{through_body.get(), past_it.get(), dx.get(), in_count, false});
    return dx;
  };
  return {y, backward, body->trained() || shortcut->trained()};
}

/// Layers that take the ReLU after them into their own work.
bool takes_relu(const nn::LayerSpec& layer) {
  return std::holds_alternative<nn::Dense>(layer) || std::holds_alternative<nn::Conv2d>(layer) ||
         std::holds_alternative<nn::BatchNorm>(layer) ||
         std::holds_alternative<nn::Residual>(layer);
}

Builder::Chain Builder::through(const std::vector<nn::LayerSpec>& layers, const Shape& input,
                                Values x) {
  const std::vector<Shape> in = nn::shapes_through(layers, input);
  Chain chain{std::move(x), {}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool relu = takes_relu(layers[i]) && i + 1 < layers.size() &&
                      std::holds_alternative<nn::Relu>(layers[i + 1]);
    Made made =
        std::visit([&](const auto& spec) { return layer(spec, in[i], chain.y, relu); }, layers[i]);
    chain.y = std::move(made.y);
    // What only slopes need is not kept in evaluation.
    if (training_) chain.stages.push_back({std::move(made.backward), made.trained});
    if (relu) ++i;
  }
  return chain;
}

Values Builder::back(const Chain& chain, Values dy, bool wanted) {
  std::size_t first = 0;  // whose inputs' slopes nothing needs
  while (!wanted && first < chain.stages.size() && !chain.stages[first].trained) ++first;
  for (std::size_t i = chain.stages.size(); i-- > first;)
    dy = chain.stages[i].backward(dy, wanted || i > first);
  return wanted ? dy : nullptr;
}

Program Builder::build(const nn::ModelSpec& spec) {
  const std::vector<Shape> shapes = nn::shapes(spec);
  const Shape& in = shapes.front();
  const Index classes = shapes.back()[0];
  const Values inputs = values(samples_ * elements_of(in)), losses = values(samples_);
  const auto labels = memory_.take<std::int32_t>(samples_);
  const auto hits = memory_.take<std::int32_t>(samples_);
  const bool planar = in.size() == 3 && in[0] > 1;
  Values x = planar ? swapped(inputs.get(), samples_, in[0], area_of(in)) : inputs;
  const Chain chain = through(spec.layers, in, std::move(x));
  const Values slopes = training_ ? values(samples_ * classes) : nullptr;
  add(SoftmaxLoss{chain.y.get(), labels.get(), slopes.get(), losses.get(), hits.get(), samples_,
                  classes});
  if (training_) back(chain, slopes, false);
  return {samples_,      inputs.get(), labels.get(),     losses.get(),
          chain.y.get(), hits.get(),   std::move(works_)};
}

}  // namespace

Program build_program(const nn::ModelSpec& spec, Index samples, bool training,
                      const ModelMemory& model, const Allocate& allocate) {
  return Builder(samples, training, model, allocate).build(spec);
}

void require_device_form(const std::vector<nn::LayerSpec>& layers) {
  for (const nn::LayerSpec& layer : layers) {
    if (std::holds_alternative<nn::Lstm>(layer)) refuse_recurrent();
    if (std::holds_alternative<nn::GroupNorm>(layer)) refuse_group_norm();
    if (const auto* residual = std::get_if<nn::Residual>(&layer)) {
      require_device_form(residual->body);
      require_device_form(residual->shortcut);
    }
  }
}

}  // namespace fast::cuda
