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

#include "cuda/host_recurrences.hpp"
#include "nn/cuda/program.hpp"

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
    const std::vector<double>& given = spec_.loss.class_weights;
    const std::vector<float> weights(given.begin(), given.end());
    const cuda::Program program = cuda::build_program(
        spec_, static_cast<cuda::Index>(batch.count()), training, precision_,
        {parameters_.data(), gradients_.data(), buffers_.data(), weights.data()},
        [&](std::size_t size_bytes) {
          memory_bytes_ += size_bytes;
          memory.emplace_back(size_bytes);
          std::fill_n(memory.back().data(), size_bytes, std::byte{0xff});  // NaN, if it is used
          return memory.back().data();
        });
    std::copy(batch.inputs.begin(), batch.inputs.end(), program.inputs);
    const bool labeled = spec_.loss.kind == nn::Loss::cross_entropy;
    if (labeled) {
      std::copy(batch.labels.begin(), batch.labels.end(), program.labels);
      if (training)
        *program.share = batch.mixed_labels.empty() ? 1 : static_cast<float>(batch.share);
      if (training) std::ranges::copy(batch.mixed_labels, program.mixed);
    } else if (batch.targets.empty())
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
