// A worker's end of an exchange of payloads on a card, for run_rounds().
#pragma once

#include <fast/cuda/kernels.hpp>
#include <fast/cuda/memory.hpp>
#include <memory>
#include <string>

#include "cuda/device/region.hpp"
#include "cuda/rounds.hpp"
#include "exchange/peers.hpp"

namespace fast::testing {

class GpuSide {
 public:
  GpuSide(const Group& group, bool mapped, int device = 0)
      : group_(group), stream_(device), work_(cuda::work_of(stream_, limit_)) {
    const EdgePlan plan = ring_plan(group.rank(), group.size());
    if (mapped) {
      region_ = cuda::share_memory(group, staged_bytes({.shape = rounds_shape}), device,
                                   Deadline(limit_));
      region_.everywhere = true;
    }
    Link link = group.open(host_shape(rounds_shape, region_), plan, rounds_options());
    peers_ = link.peers;
    peers_->announce(WorkerStatus::running);
    exchange_ =
        staged_exchange(std::move(link.exchange),
                        {.shape = rounds_shape, .work = work_, .region = region_, .exact = true});
  }
  /// Collective.
  void close() {
    peers_->announce(WorkerStatus::finished);
    exchange_.reset();
    group_.barrier(Deadline(limit_), "the end of a test");
    region_ = {};
  }

  Exchange& exchange() { return *exchange_; }
  void fill(float* to, const std::vector<float>& values) {
    cuda::copy(to, values.data(), values.size() * sizeof(float), stream_);
    stream_.synchronize(Deadline(limit_));
  }
  void average(float* next, const float* own, const std::vector<const float*>& values,
               const std::vector<float>& weights) {
    cuda::average(cuda::Average<float, float>{nullptr, next, own, values, weights, rounds_count},
                  stream_);
  }
  std::vector<float> read(const float* from) {
    std::vector<float> values(rounds_count);
    cuda::copy(values.data(), from, rounds_count * sizeof(float), stream_);
    stream_.synchronize(Deadline(limit_));
    return values;
  }

 private:
  static constexpr Seconds limit_{30};
  Group group_;
  cuda::Stream stream_;
  std::shared_ptr<cuda::DeviceWork> work_;
  std::shared_ptr<Peers> peers_;
  cuda::DeviceRegion region_;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace fast::testing
