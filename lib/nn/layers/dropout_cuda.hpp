// Dropout on GPUs.
#pragma once

#include "nn/layers/cuda_part.hpp"
#include "nn/noise.hpp"

namespace fast::cuda {

/// A number for each sample, as nn draws it.
struct DrawNoise {
  const float *parameters, *inputs;
  std::uint64_t* noise;
  Index parameter_count, samples, sample_size;

  Index size() const { return samples; }
  FAST_HOST_DEVICE void at(Index sample) const {
    const std::uint64_t of_model =
        nn::noise_of_model(parameters, static_cast<std::size_t>(parameter_count));
    noise[sample] = nn::noise_of_sample(of_model, inputs + sample * sample_size,
                                        static_cast<std::size_t>(sample_size));
  }
};

/// Values of images are [pixel][channel]; the mask is of their places in nn's order. Vectors and
/// sequences have one channel.
template <class V>
struct Drop {
  nn::DropoutMask mask;
  const std::uint64_t* noise;
  Index place;
  const V* x;
  V* y;
  Index samples, channels, area;

  Index size() const { return samples * channels * area; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index within = e % (channels * area), sample = e / (channels * area);
    const Index element = within % channels * area + within / channels;
    put(mask.masked(get(x, e), nn::DropoutMask::seed(noise[sample], place), element), y, e);
  }
};

/// Evaluation passes the values on.
template <>
struct GpuPart<nn::Dropout> {
  template <class V>
  using Works = WorkList<DrawNoise, Drop<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Dropout& dropout, const Ends& ends,
                     const Values<V>& x, bool) {
    if (!build.training()) return {x, nullptr};
    const Index size = elements_of(ends.in), channels = ends.in.size() == 3 ? ends.in[0] : 1;
    const auto masked = [=, &build, noise = build.noise(),
                         place = build.place()](const Values<V>& from) {
      const Values<V> to = build.values(build.samples() * size);
      build.add(Drop<V>{nn::DropoutMask(dropout.rate), noise.get(), place, from.get(), to.get(),
                        build.samples(), channels, size / channels});
      return to;
    };
    return {masked(x), [masked](const Values<V>& dy, bool wanted) -> Values<V> {
              return wanted ? masked(dy) : nullptr;
            }};
  }
};

}  // namespace fast::cuda
