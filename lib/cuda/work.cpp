#include <fast/cuda/exchange.hpp>
#include <fast/cuda/memory.hpp>
#include <vector>

namespace fast::cuda {
namespace {

class StreamWork final : public DeviceWork {
 public:
  StreamWork(const Stream& stream, Seconds deadline)
      : stream_(stream), deadline_(deadline), mark_(stream.device()) {}

  std::shared_ptr<std::byte> allocate(std::size_t size_bytes) override {
    auto buffer = std::make_shared<DeviceBuffer>(size_bytes, stream_.device());
    return {buffer, buffer->data()};
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    cuda::copy(to, from, size_bytes, stream_);
  }
  void pin(std::span<const std::byte> memory) override {
    pinned_.emplace_back(std::span(const_cast<std::byte*>(memory.data()), memory.size()));
  }
  void settle() override {
    mark_.record(stream_);
    mark_.synchronize(Deadline(deadline_));
  }

 private:
  const Stream& stream_;
  Seconds deadline_;
  Event mark_;
  std::vector<PinnedRange> pinned_;
};

}  // namespace

std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline) {
  return std::make_shared<StreamWork>(stream, deadline);
}

}  // namespace fast::cuda
