// Carries out a program's works on the host, place by place: kernels' arithmetic as threads do it,
// last place first so that none may need another's result; convolutions and products by plain
// loops.
#pragma once

#include <cuda/program.hpp>
#include <fast/core/batch.hpp>
#include <fast/core/memory.hpp>
#include <fast/nn/network.hpp>
#include <memory>
#include <vector>

namespace fast::testing {

/// f(x's place, filter's place, y's place) for all products of a convolution.
template <class F>
void each_product(const cuda::ConvolutionShape& s, const F& f) {
  using cuda::Index;
  for (Index n = 0; n < s.samples; ++n)
    for (Index r = 0; r < s.out_height; ++r)
      for (Index c = 0; c < s.out_width; ++c)
        for (Index o = 0; o < s.filters; ++o)
          for (Index i = 0; i < s.kernel; ++i)
            for (Index j = 0; j < s.kernel; ++j) {
              const Index row = r * s.stride + i - s.padding, column = c * s.stride + j - s.padding;
              if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
              const Index x = ((n * s.height + row) * s.width + column) * s.channels;
              const Index w = ((o * s.kernel + i) * s.kernel + j) * s.channels;
              const Index y = ((n * s.out_height + r) * s.out_width + c) * s.filters + o;
              for (Index k = 0; k < s.channels; ++k) f(x + k, w + k, y);
            }
}

inline void run_on_host(const cuda::Convolution& work) {
  using Kind = cuda::Convolution::Kind;
  const cuda::ConvolutionShape& s = work.shape;
  const cuda::Index sizes[] = {s.samples * s.out_height * s.out_width * s.filters,
                               s.samples * s.height * s.width * s.channels,
                               s.filters * s.kernel * s.kernel * s.channels};
  std::vector<double> sums(static_cast<std::size_t>(sizes[static_cast<int>(work.kind)]));
  each_product(s, [&](cuda::Index x, cuda::Index w, cuda::Index y) {
    const cuda::Index a = work.kind == Kind::input_slopes ? y : x;
    const cuda::Index b = work.kind == Kind::filter_slopes ? y : w;
    const cuda::Index out = work.kind == Kind::forward        ? y
                            : work.kind == Kind::input_slopes ? x
                                                              : w;
    sums[static_cast<std::size_t>(out)] += double{work.a[a]} * double{work.b[b]};
  });
  for (std::size_t e = 0; e < sums.size(); ++e) work.out[e] = static_cast<float>(sums[e]);
}

inline void run_on_host(const cuda::MatrixProduct& p) {
  for (cuda::Index n = 0; n < p.n; ++n)
    for (cuda::Index m = 0; m < p.m; ++m) {
      double sum = p.bias == nullptr ? 0 : double{p.bias[m]};
      for (cuda::Index k = 0; k < p.k; ++k)
        sum += double{p.a[p.a_by_k ? k * p.m + m : m * p.k + k]} *
               double{p.b[p.b_by_k ? k * p.n + n : n * p.k + k]};
      p.c[n * p.m + m] = p.relu && !(sum > 0) ? 0 : static_cast<float>(sum);
    }
}

template <class Elements>
void run_on_host(const Elements& work) {
  for (cuda::Index e = work.size(); e-- > 0;) work.at(e);
}

/// cuda::Network's counterpart in host memory.
class HostNetwork {
 public:
  explicit HostNetwork(nn::ModelSpec spec) : spec_(std::move(spec)) {
    const std::size_t count = nn::parameter_count(spec_);
    parameters_.resize(count);
    gradients_.resize(count, -1);
    for (const nn::ParameterSpec& b : nn::buffers(spec_))
      buffers_.resize(b.offset + b.count, static_cast<float>(b.initial));
  }
  void set_parameters(std::span<const float> values) {
    parameters_.assign(values.begin(), values.end());
  }
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
        spec_, static_cast<cuda::Index>(batch.count()), training,
        {parameters_.data(), gradients_.data(), buffers_.data()}, [&](std::size_t size_bytes) {
          memory_bytes_ += size_bytes;
          memory.emplace_back(size_bytes);
          std::fill_n(memory.back().data(), size_bytes, std::byte{0xff});  // NaN, if it is used
          return memory.back().data();
        });
    std::copy(batch.inputs.begin(), batch.inputs.end(), program.inputs);
    std::copy(batch.labels.begin(), batch.labels.end(), program.labels);
    work_count_ = program.works.size();
    for (const cuda::Work& work : program.works)
      std::visit([](const auto& w) { run_on_host(w); }, work);
    nn::LossResult result;
    for (std::size_t i = 0; i < batch.count(); ++i) {
      result.sum += double{program.losses[i]};
      result.correct += program.hits[i] != 0;
    }
    return result;
  }

  nn::ModelSpec spec_;
  std::vector<float> parameters_, gradients_, buffers_;
  std::size_t memory_bytes_ = 0, work_count_ = 0;
};

}  // namespace fast::testing
