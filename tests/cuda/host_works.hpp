// Carries out a program's works on the host, place by place: kernels' arithmetic as threads do it,
// last place first so that none may need another's result; convolutions and products by plain
// loops.
#pragma once

#include <cmath>
#include <cstring>
#include <fast/core/batch.hpp>
#include <fast/core/memory.hpp>
#include <fast/nn/network.hpp>
#include <memory>
#include <vector>

#include "cuda/network/program.hpp"

namespace fast::testing {

/// f(x's place, filter's place, y's place) for all products of a convolution.
template <class F>
void each_product(const cuda::ConvolutionShape& s, const F& f) {
  using cuda::Index;
  for (Index n = 0; n < s.samples; ++n)
    for (Index r = 0; r < s.out_height; ++r)
      for (Index c = 0; c < s.out_width; ++c)
        for (Index o = 0; o < s.filters; ++o)
          for (Index i = 0; i < s.kernel_rows(); ++i)
            for (Index j = 0; j < s.kernel; ++j) {
              const Index row = r * s.stride + i - s.padding_rows();
              const Index column = c * s.stride + j - s.padding;
              if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
              const Index x = ((n * s.height + row) * s.width + column) * s.channels;
              const Index w = ((o * s.kernel_rows() + i) * s.kernel + j) * s.channels;
              const Index y = ((n * s.out_height + r) * s.out_width + c) * s.filters + o;
              for (Index k = 0; k < s.channels; ++k) f(x + k, w + k, y);
            }
}

/// Elements of f32 or bf16, to be read and written as f32.
class Tensor {
 public:
  Tensor(const void* data, DType type) : data_(const_cast<void*>(data)), type_(type) {}
  double operator[](cuda::Index e) const {
    return type_ == DType::f32 ? double{cuda::get(static_cast<const float*>(data_), e)}
                               : double{cuda::get(static_cast<const BFloat16*>(data_), e)};
  }
  void put(double value, cuda::Index e) const {
    const auto rounded = static_cast<float>(value);
    if (type_ == DType::f32)
      cuda::put(rounded, static_cast<float*>(data_), e);
    else
      cuda::put(rounded, static_cast<BFloat16*>(data_), e);
  }

 private:
  void* data_;
  DType type_;
};

inline void run_on_host(const cuda::Convolution& work) {
  using Kind = cuda::Convolution::Kind;
  const cuda::ConvolutionShape& s = work.shape;
  const cuda::Index sizes[] = {s.samples * s.out_height * s.out_width * s.filters,
                               s.samples * s.height * s.width * s.channels,
                               s.filters * s.kernel_rows() * s.kernel * s.channels};
  std::vector<double> sums(static_cast<std::size_t>(sizes[static_cast<int>(work.kind)]));
  const Tensor first(work.a, s.type), second(work.b, s.type);
  each_product(s, [&](cuda::Index x, cuda::Index w, cuda::Index y) {
    const cuda::Index a = work.kind == Kind::input_grads ? y : x;
    const cuda::Index b = work.kind == Kind::filter_grads ? y : w;
    const cuda::Index out = work.kind == Kind::forward ? y : work.kind == Kind::input_grads ? x : w;
    sums[static_cast<std::size_t>(out)] += first[a] * second[b];
  });
  const Tensor results(work.out, s.type);
  for (std::size_t e = 0; e < sums.size(); ++e) results.put(sums[e], static_cast<cuda::Index>(e));
}

inline void run_on_host(const cuda::MatrixProduct& p) {
  const Tensor a(p.a, p.factors), b(p.b, p.factors), bias(p.bias, p.result), c(p.c, p.result);
  for (cuda::Index n = 0; n < p.n; ++n)
    for (cuda::Index m = 0; m < p.m; ++m) {
      double sum = p.bias == nullptr ? 0 : bias[m];
      for (cuda::Index k = 0; k < p.k; ++k)
        sum += a[p.a_by_k ? k * p.m + m : m * p.k + k] * b[p.b_by_k ? k * p.n + n : n * p.k + k];
      c.put(p.relu && !(sum > 0) ? 0 : sum, n * p.m + m);
    }
}

inline double rounded(float value, DType type) {
  return double{type == DType::bf16 ? to_float(to_bfloat16(value)) : value};
}

/// One sample's way through an LSTM, forward and, with gradients of the outputs, back.
class HostLstm {
 public:
  HostLstm(const cuda::Recurrence& work, cuda::Index sample)
      : work_(work), shape_(work.shape), sample_(sample) {
    const auto hidden = static_cast<std::size_t>(shape_.hidden);
    std::vector<double> h(hidden), c(hidden);
    for (cuda::Index t = 0; t < shape_.steps; ++t) {
      steps_.push_back({{}, h, c, c});
      for (cuda::Index u = 0; u < shape_.hidden; ++u) advance(t, u, h);
      c = steps_.back().cells;
    }
  }

  /// dx, and what is added to the gradients, [4 hidden][inputs + hidden + 1].
  void back(std::vector<double>& gradients) const {
    const cuda::Index hidden = shape_.hidden, inputs = shape_.inputs;
    const Tensor x(work_.x, shape_.type), dy(work_.dy, shape_.type), dx(work_.dx, shape_.type);
    std::vector<double> dh(static_cast<std::size_t>(hidden)), dc = dh;
    for (cuda::Index t = shape_.steps; t-- > 0;) {
      const Step& step = steps_[static_cast<std::size_t>(t)];
      std::vector<double> grads(static_cast<std::size_t>(4 * hidden));
      for (cuda::Index u = 0; u < hidden; ++u) {
        const auto i = static_cast<std::size_t>(u), n = static_cast<std::size_t>(hidden);
        const double in = step.gates[4 * i], forget = step.gates[4 * i + 1],
                     fresh = step.gates[4 * i + 2], out = step.gates[4 * i + 3],
                     shown = std::tanh(step.cells[i]);
        const double doutput = dh[i] + dy[row(t, hidden) + u];
        dc[i] += doutput * out * (1 - shown * shown);
        grads[i] = dc[i] * fresh * in * (1 - in);
        grads[n + i] = dc[i] * step.cells_before[i] * forget * (1 - forget);
        grads[2 * n + i] = dc[i] * in * (1 - fresh * fresh);
        grads[3 * n + i] = doutput * shown * out * (1 - out);
        dc[i] *= forget;
      }
      std::fill(dh.begin(), dh.end(), 0);
      std::vector<double> sums(static_cast<std::size_t>(inputs));
      for (cuda::Index g = 0; g < 4 * hidden; ++g) {
        const double grad = grads[static_cast<std::size_t>(g)];
        for (cuda::Index i = 0; i < inputs; ++i) {
          sums[static_cast<std::size_t>(i)] += grad * weight(g * inputs + i);
          gradients[static_cast<std::size_t>(g * inputs + i)] += grad * x[row(t, inputs) + i];
        }
        for (cuda::Index u = 0; u < hidden; ++u) {
          const cuda::Index place = 4 * hidden * inputs + g * hidden + u;
          dh[static_cast<std::size_t>(u)] += grad * weight(place);
          gradients[static_cast<std::size_t>(place)] +=
              grad * step.outputs_before[static_cast<std::size_t>(u)];
        }
        gradients[static_cast<std::size_t>(4 * hidden * (inputs + hidden) + g)] += grad;
      }
      for (cuda::Index i = 0; i < inputs; ++i)
        dx.put(sums[static_cast<std::size_t>(i)], row(t, inputs) + i);
    }
  }

 private:
  struct Step {
    std::vector<double> gates;  // [hidden][4]
    std::vector<double> outputs_before, cells_before, cells;
  };
  /// As the library has it.
  double weight(cuda::Index e) const { return rounded(work_.weights[e], shape_.type); }
  cuda::Index row(cuda::Index t, cuda::Index features) const {
    return (sample_ * shape_.steps + t) * features;
  }

  void advance(cuda::Index t, cuda::Index u, std::vector<double>& h) {
    const cuda::Index hidden = shape_.hidden, inputs = shape_.inputs;
    const Tensor x(work_.x, shape_.type), y(work_.y, shape_.type);
    Step& step = steps_.back();
    for (cuda::Index gate = 0; gate < 4; ++gate) {
      const cuda::Index g = gate * hidden + u;
      double z = weight(4 * hidden * (inputs + hidden) + g);
      for (cuda::Index i = 0; i < inputs; ++i) z += weight(g * inputs + i) * x[row(t, inputs) + i];
      for (cuda::Index j = 0; j < hidden; ++j)
        z += weight(4 * hidden * inputs + g * hidden + j) *
             step.outputs_before[static_cast<std::size_t>(j)];
      step.gates.push_back(gate == 2 ? std::tanh(z) : 1 / (1 + std::exp(-z)));
    }
    const double* gates = step.gates.data() + step.gates.size() - 4;
    const auto i = static_cast<std::size_t>(u);
    step.cells[i] = gates[1] * step.cells_before[i] + gates[0] * gates[2];
    h[i] = rounded(static_cast<float>(gates[3] * std::tanh(step.cells[i])), shape_.type);
    if (work_.kind != cuda::Recurrence::Kind::grads) y.put(h[i], row(t, hidden) + u);
  }

  const cuda::Recurrence& work_;
  cuda::LstmShape shape_;
  cuda::Index sample_;
  std::vector<Step> steps_;
};

inline void run_on_host(const cuda::Recurrence& work) {
  const cuda::Index count = cuda::LstmSizes{work.shape.inputs, work.shape.hidden}.count();
  std::vector<double> gradients(static_cast<std::size_t>(count));
  for (cuda::Index sample = 0; sample < work.shape.samples; ++sample) {
    const HostLstm lstm(work, sample);
    if (work.kind == cuda::Recurrence::Kind::grads) lstm.back(gradients);
  }
  for (cuda::Index e = 0; e < count && work.gradients != nullptr; ++e)
    work.gradients[e] = static_cast<float>(gradients[static_cast<std::size_t>(e)]);
}

template <class Elements>
void run_on_host(const Elements& work) {
  for (cuda::Index e = work.size(); e-- > 0;) work.at(e);
}

template <class Work>
requires cuda::is_block_work<Work>
void run_on_host(const Work& work) {
  const auto scratch = std::make_unique<typename Work::Scratch>();
  for (cuda::Index block = work.shares.blocks(); block-- > 0;) {
    std::memset(scratch.get(), 0xff, sizeof *scratch);
    cuda::run_block(work, block, *scratch, [](const auto& f) {
      for (int thread = cuda::block_size; thread-- > 0;) f(thread);
    });
  }
}

/// cuda::Network's counterpart in host memory.
class HostNetwork {
 public:
  explicit HostNetwork(nn::ModelSpec spec, cuda::Precision precision = cuda::Precision::f32)
      : spec_(std::move(spec)), precision_(precision) {
    const std::size_t count = nn::parameter_count(spec_);
    parameters_.resize(count);
    gradients_.resize(count, -1);
    for (const nn::ParameterSpec& b : nn::buffers(spec_))
      buffers_.resize(b.offset + b.count, static_cast<float>(b.initial));
  }
  void set_parameters(std::span<const float> values) {
    parameters_.assign(values.begin(), values.end());
  }
  void set_buffers(std::span<const float> values) { buffers_.assign(values.begin(), values.end()); }
  std::vector<float> gradients() const { return gradients_; }
  std::vector<float> buffers() const { return buffers_; }
  std::size_t memory_bytes() const { return memory_bytes_; }
  std::size_t work_count() const { return work_count_; }

  double loss_and_gradients(const Batch& batch) {
    return run(batch, true).sum / static_cast<double>(batch.count());
  }
  nn::LossResult evaluate(const Batch& batch) { return run(batch, false); }

 private:
  nn::LossResult run(const Batch& batch, bool training) {
    std::vector<AlignedBuffer> memory;
    memory_bytes_ = 0;
    const cuda::Program program = cuda::build_program(
        spec_, static_cast<cuda::Index>(batch.count()), training, precision_,
        {parameters_.data(), gradients_.data(), buffers_.data()}, [&](std::size_t size_bytes) {
          memory_bytes_ += size_bytes;
          memory.emplace_back(size_bytes);
          std::fill_n(memory.back().data(), size_bytes, std::byte{0xff});  // NaN, if it is used
          return memory.back().data();
        });
    std::copy(batch.inputs.begin(), batch.inputs.end(), program.inputs);
    const bool labeled = spec_.loss.kind == nn::Loss::cross_entropy;
    if (labeled)
      std::copy(batch.labels.begin(), batch.labels.end(), program.labels);
    else if (batch.targets.empty())
      std::copy(batch.labels.begin(), batch.labels.end(), program.targets);
    else
      std::copy(batch.targets.begin(), batch.targets.end(), program.targets);
    work_count_ = program.works.size();
    for (const cuda::Work& work : program.works)
      std::visit([](const auto& w) { run_on_host(w); }, work);
    nn::LossResult result;
    const auto losses = static_cast<std::size_t>(program.losses_count);
    for (std::size_t i = 0; i < losses; ++i) {
      result.sum += double{program.losses[i]};
      result.correct += labeled && program.hits[i] != 0 ? 1 : 0;
    }
    result.sum *= static_cast<double>(batch.count()) / static_cast<double>(losses);
    if (program.outputs != nullptr) {
      const std::size_t outputs =
          batch.count() * static_cast<std::size_t>(cuda::elements_of(nn::shapes(spec_).back()));
      result.measures = nn::measures_of<float>(spec_.loss, {program.outputs, outputs}, batch);
    }
    return result;
  }

  nn::ModelSpec spec_;
  cuda::Precision precision_;
  std::vector<float> parameters_, gradients_, buffers_;
  std::size_t memory_bytes_ = 0, work_count_ = 0;
};

}  // namespace fast::testing
