// Memory of devices, and host memory that devices copy from and to at full speed.
#pragma once

#include <fast/cuda/handle.hpp>
#include <fast/cuda/stream.hpp>

#include <cstddef>
#include <span>

namespace fast::cuda {

void free_device(void* memory);
void free_pinned(void* memory);
void unpin(void* memory);

/// Zeroed memory of a device, that only the device may touch. Moveable. Throws Error(resource) when
/// there is not enough, or as cuda::device() does. Freeing it waits for what the device still does.
class DeviceBuffer : public Buffer<free_device> {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size_bytes, int device = 0);
};

/// Zeroed host memory that the system does not page out, for copies beside other work.
class PinnedBuffer : public Buffer<free_pinned> {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t size_bytes);
};

/// Pins memory that is there already (slots in a shared window) for as long as this lives; the
/// memory must outlive it. What another range of this process has pinned stays that one's: it is
/// unpinned with it, so let it live until all copies are done.
class PinnedRange {
 public:
  explicit PinnedRange(std::span<std::byte> memory);

 private:
  Handle<unpin> memory_;
};

/// Enqueues a copy between any two places, of host or device. Beside other work only where host
/// memory is pinned. Copies may not overlap.
void copy(void* to, const void* from, std::size_t size_bytes, const Stream& stream);

}  // namespace fast::cuda
