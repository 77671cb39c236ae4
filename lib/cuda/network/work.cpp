#include "cuda/network/work.hpp"

#include <fast/core/error.hpp>
#include <fast/cuda/memory.hpp>
#include <map>
#include <mutex>

#include "cuda/device/runtime.hpp"

namespace fast::cuda {
namespace {

/// Copies of memory that cannot be pinned work too, but are slower.
std::shared_ptr<PinnedRange> pinned(std::span<const std::byte> memory) {
  try {
    return std::make_shared<PinnedRange>(
        std::span(const_cast<std::byte*>(memory.data()), memory.size()));
  } catch (const Error&) {
    return nullptr;
  }
}

/// Threads of one process copy from the slots of each other. The slots stay pinned until the last
/// thread releases them.
std::shared_ptr<void> pinned_together(std::span<const std::byte> memory) {
  static std::mutex mutex;
  static std::map<const std::byte*, std::weak_ptr<PinnedRange>> ranges;
  const std::lock_guard lock(mutex);
  std::erase_if(ranges, [](const auto& range) { return range.second.expired(); });
  std::weak_ptr<PinnedRange>& range = ranges[memory.data()];
  std::shared_ptr<PinnedRange> held = range.lock();
  if (!held) {
    held = pinned(memory);
    range = held;
  }
  return held;
}

class StreamWork final : public DeviceWork {
 public:
  StreamWork(const Stream& stream, Seconds deadline)
      : stream_(stream), deadline_(deadline), mark_(stream.device()) {}
  /// Uses a new stream.
  StreamWork(std::unique_ptr<Stream> own, Seconds deadline)
      : own_(std::move(own)), stream_(*own_), deadline_(deadline), mark_(stream_.device()) {}

  std::shared_ptr<std::byte> allocate(std::size_t size_bytes) override {
    auto buffer = std::make_shared<DeviceBuffer>(size_bytes, stream_.device());
    return {buffer, buffer->data()};
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    cuda::copy(to, from, size_bytes, stream_);
  }
  std::shared_ptr<void> pin(std::span<const std::byte> memory) override {
    return pinned_together(memory);
  }
  void settle() override {
    mark_.record(stream_);
    mark_.synchronize(Deadline(deadline_));
  }
  std::shared_ptr<DeviceWork> beside() override {
    return std::make_shared<StreamWork>(std::make_unique<Stream>(stream_.device()), deadline_);
  }
  /// In the default mode, a query or an allocation of this thread would end a capture of another
  /// one, which PyTorch makes in mode "global".
  void begin_thread() override {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  }

 private:
  std::unique_ptr<Stream> own_;
  const Stream& stream_;
  Seconds deadline_;
  Event mark_;
};

}  // namespace

std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline) {
  return std::make_shared<StreamWork>(stream, deadline);
}

}  // namespace fast::cuda
