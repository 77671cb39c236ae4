#include <fast/core/error.hpp>
#include <fast/cuda/accelerator.hpp>

#include "combine/accelerator.hpp"
#include "cuda/averaging/average_launch.hpp"
#include "cuda/averaging/rule_elements.hpp"
#include "cuda/averaging/rule_launch.hpp"
#include "cuda/device/region.hpp"
#include "cuda/device/runtime.hpp"
#include "mpi/interop.hpp"

namespace fast::cuda {
namespace {

cudaError_t launch(const combine::ElementWork& work, cudaStream_t stream) {
  if (!work.average) return launch_rule(work, stream);
  cudaError_t code = cudaSuccess;
  launch_average_elements(work, [&]<class T, class Slot>(const AverageLaunch<T, Slot>& average) {
    code = launch_average<T, Slot>(average, stream);
  });
  return code;
}

class StreamAccelerator final : public Accelerator {
 public:
  /// Without `own`, the caller owns the stream.
  StreamAccelerator(std::unique_ptr<Stream> own, const Stream& stream, Seconds deadline)
      : own_(std::move(own)),
        stream_(stream),
        work_(work_of(stream_, deadline)),
        before_(stream.device()),
        after_(stream.device()) {}

  Device device() const override { return {Device::Kind::cuda, stream_.device()}; }
  const std::shared_ptr<DeviceWork>& work() const override { return work_; }
  void run(const combine::ElementWork& work) override {
    const UseDevice use(stream_.device());
    check(launch(work, static_cast<cudaStream_t>(stream_.handle())), "a sweep over the model");
  }
  void order(Order order, void* queue) override {
    const UseDevice use(stream_.device());
    const auto program = static_cast<cudaStream_t>(queue);
    const auto own = static_cast<cudaStream_t>(stream_.handle());
    require_no_capture(program);
    if (program == own) return;
    order == Order::after ? follow(own, program, before_) : follow(program, own, after_);
  }
  DeviceRegion share(const Group& group, std::size_t bytes_per_worker,
                     const Deadline& deadline) override {
    return share_memory(group, bytes_per_worker, stream_.device(), deadline);
  }
  std::string why_not_by_mpi() const override { return mpi::why_not_cuda_memory(); }

 private:
  static void require_no_capture(cudaStream_t stream) {
    cudaStreamCaptureStatus status{};
    check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    require(status == cudaStreamCaptureStatusNone, ErrorKind::argument,
            "Worker: a CUDA graph is being captured from the program's stream; a round cannot be a "
            "part of a graph, so end the capture before the round ends");
  }
  /// Work that `later` is given from now on starts after what `earlier` has.
  static void follow(cudaStream_t later, cudaStream_t earlier, const Event& mark) {
    const auto event = static_cast<cudaEvent_t>(mark.handle());
    check(cudaEventRecord(event, earlier), "cudaEventRecord");
    check(cudaStreamWaitEvent(later, event, 0), "cudaStreamWaitEvent");
  }

  std::unique_ptr<Stream> own_;
  const Stream& stream_;
  std::shared_ptr<DeviceWork> work_;
  Event before_, after_;  ///< of the program's work and of this one's
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
