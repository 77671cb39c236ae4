// Memory of devices, and host memory for fast copies to and from devices.
#pragma once

#include <fast/cuda/stream.hpp>

#include <cstddef>
#include <span>

namespace fast::cuda {

void free_device(void* memory);
void free_pinned(void* memory);
void unpin(void* memory);

/// Zeroed memory of a device, which only the device may access. Movable. Throws Error(resource) if
/// there is not enough memory, or as cuda::device() does. The destructor waits for work of the
/// device.
class DeviceBuffer : public Buffer<free_device> {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size_bytes, int device = 0);
};

/// Zeroed, pinned host memory. Copies from and to it run beside other work.
class PinnedBuffer : public Buffer<free_pinned> {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t size_bytes);
};

/// Pins existing memory, such as slots in a shared window, until the destructor. The memory must
/// outlive it. Memory that another range of this process has pinned stays with that range: keep
/// that range until all copies are done.
class PinnedRange {
 public:
  explicit PinnedRange(std::span<std::byte> memory);

 private:
  Handle<unpin> memory_;
};

/// Enqueues a copy between any two places of host or device. It runs beside other work only if host
/// memory is pinned. Source and target may not overlap.
void copy(void* to, const void* from, std::size_t size_bytes, const Stream& stream);

}  // namespace fast::cuda
