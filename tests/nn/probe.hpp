// One layer on its own, and what its gradients must be.
#pragma once

#include <fast/core/memory.hpp>

#include "nn/layer.hpp"
#include "nn/samples.hpp"
#include "support/catch.hpp"

namespace fast::nn {

using Values = std::vector<double>;

inline Values random_values(std::size_t count, Rng& rng) {
  Values values(count);
  for (double& v : values) v = rng.normal();
  return values;
}

/// One layer in double on `count` samples, with values in their natural order [sample][...].
class Probe {
 public:
  Probe(const LayerSpec& spec, Shape in, Index count)
      : in_(std::move(in)), count_(count), layer_(make_layer<double>(spec, in_)) {
    const ModelSpec alone{"probe", in_, {spec, Flatten{}}};  // Flatten takes vectors, too
    out_ = shapes(alone)[1];
    parameter_count_ = parameter_count(alone);
    for (const ParameterSpec& b : fast::nn::buffers(alone))
      buffers_.insert(buffers_.end(), b.count, b.initial);
    x_ = stored(in_);
    y_ = stored(out_);
  }
  std::size_t parameters() const { return parameter_count_; }
  std::size_t inputs() const { return natural(in_); }
  std::size_t outputs() const { return natural(out_); }

  Values& buffers() { return buffers_; }

  Values forward(const Values& parameters, const Values& x, bool training = true) {
    load(x, x_, in_);
    layer_->forward(parameters.data(), data(x_), data(y_), {count_, training, buffers_.data()});
    return unload(y_, out_);
  }

  struct Gradients {
    Values parameters, inputs;
  };
  /// Of the sum of gradients · outputs, after forward().
  Gradients backward(const Values& parameters, const Values& grads) {
    AlignedBuffer dy = stored(out_), dx = stored(in_);
    load(grads, dy, out_);
    Values gradients(parameter_count_, 777);  // to be overwritten
    if (layer_->in_place())
      layer_->backward(parameters.data(), gradients.data(), data(x_), data(y_), data(dy), data(dy),
                       count_);
    else
      layer_->backward(parameters.data(), gradients.data(), data(x_), data(y_), data(dy), data(dx),
                       count_);
    return {gradients, unload(layer_->in_place() ? dy : dx, in_)};
  }

 private:
  std::size_t natural(const Shape& shape) const {
    return static_cast<std::size_t>(count_ * elements(shape));
  }
  AlignedBuffer stored(const Shape& shape) const {
    return AlignedBuffer(static_cast<std::size_t>(stored_elements<double>(shape, count_)) * 8);
  }
  static double* data(const AlignedBuffer& buffer) { return buffer.as<double>().data(); }
  void load(const Values& from, const AlignedBuffer& to, const Shape& shape) const {
    if (shape.size() == 3)
      to_blocks(from.data(), data(to), count_, elements(shape));
    else
      std::copy(from.begin(), from.end(), data(to));
  }
  Values unload(const AlignedBuffer& from, const Shape& shape) const {
    Values to(natural(shape));
    if (shape.size() == 3)
      from_blocks(data(from), to.data(), count_, elements(shape));
    else
      std::copy_n(data(from), to.size(), to.begin());
    return to;
  }

  Shape in_, out_;
  Index count_;
  std::unique_ptr<Layer<double>> layer_;
  std::size_t parameter_count_ = 0;
  AlignedBuffer x_, y_;
  Values buffers_;
};

inline double dot(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Central differences of the sum of gradients · outputs with respect to `values`.
template <class Sum>
Values differences(Values& values, Sum sum) {
  constexpr double h = 1e-5;
  Values result;
  for (double& v : values) {
    const double kept = v;
    v = kept + h;
    const double above = sum();
    v = kept - h;
    result.push_back((above - sum()) / (2 * h));
    v = kept;
  }
  return result;
}

inline void check_close(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("value " << i);
    REQUIRE(found[i] == Approx(expected[i]).epsilon(1e-6).margin(1e-7));
  }
}

inline void check_gradients(const LayerSpec& spec, const Shape& in, Index count) {
  INFO(describe(spec) << " on " << count << " x " << describe(in) << ", seed 11");
  Rng rng(11);
  Probe probe(spec, in, count);
  Values parameters = random_values(probe.parameters(), rng);
  Values x = random_values(probe.inputs(), rng);
  if (const std::int64_t tokens = tokens_of({spec}); tokens > 0)
    for (double& token : x)
      token = static_cast<double>(rng.below(static_cast<std::uint64_t>(tokens)));
  const Values grads = random_values(probe.outputs(), rng);
  probe.forward(parameters, x);
  const Probe::Gradients found = probe.backward(parameters, grads);
  const auto sum = [&] { return dot(grads, probe.forward(parameters, x)); };
  check_close(found.parameters, differences(parameters, sum));
  check_close(found.inputs, differences(x, sum));
}

}  // namespace fast::nn
