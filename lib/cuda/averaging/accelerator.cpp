#include <fast/core/error.hpp>
#include <fast/cuda/accelerator.hpp>
#include <fast/cuda/kernels.hpp>

#include "combine/accelerator.hpp"
#include "cuda/averaging/rule_elements.hpp"
#include "cuda/averaging/rule_launch.hpp"
#include "cuda/device/region.hpp"
#include "cuda/device/runtime.hpp"
#include "mpi/interop.hpp"

namespace fast::cuda {
namespace {

void average(const combine::ElementWork& work, const Stream& stream) {
  with_types(work, [&]<class T, class Slot>(T, Slot) {
    std::vector<const Slot*> values;
    for (const void* source : work.sources) values.push_back(static_cast<const Slot*>(source));
    const std::vector<T> weights(work.weights.begin(), work.weights.end());
    cuda::average(Average<T, Slot>{static_cast<T*>(work.current), static_cast<Slot*>(work.next),
                                   static_cast<const Slot*>(work.own), values, weights, work.count},
                  stream);
  });
}

class StreamAccelerator final : public Accelerator {
 public:
  /// Without `own`, the caller owns the stream.
  StreamAccelerator(std::unique_ptr<Stream> own, const Stream& stream, Seconds deadline)
      : own_(std::move(own)), stream_(stream), work_(work_of(stream_, deadline)) {}

  Device device() const override { return {Device::Kind::cuda, stream_.device()}; }
  const std::shared_ptr<DeviceWork>& work() const override { return work_; }
  void run(const combine::ElementWork& work) override {
    if (work.average) return average(work, stream_);
    const UseDevice use(stream_.device());
    check(launch_rule(work, static_cast<cudaStream_t>(stream_.handle())),
          fmt::format("a rule's sweep over {} elements", work.count));
  }
  DeviceRegion share(const Group& group, std::size_t bytes_per_worker,
                     const Deadline& deadline) override {
    return share_memory(group, bytes_per_worker, stream_.device(), deadline);
  }
  std::string why_not_by_mpi() const override { return mpi::why_not_cuda_memory(); }

 private:
  std::unique_ptr<Stream> own_;
  const Stream& stream_;
  std::shared_ptr<DeviceWork> work_;
};

}  // namespace

std::shared_ptr<Accelerator> accelerator(int device, Seconds deadline) {
  auto own = std::make_unique<Stream>(device);
  const Stream& stream = *own;
  return std::make_shared<StreamAccelerator>(std::move(own), stream, deadline);
}

std::shared_ptr<Accelerator> accelerator(const Stream& stream, Seconds deadline) {
  return std::make_shared<StreamAccelerator>(nullptr, stream, deadline);
}

}  // namespace fast::cuda
