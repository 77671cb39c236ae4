// Memory of devices, and host memory that devices copy from and to at full speed.
#pragma once

#include <fast/cuda/stream.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace fast::cuda {

/// Zeroed memory of a device, aligned to 256 bytes. Moveable. Throws Error(resource) when there is
/// not enough, or as cuda::device() does. Freeing it waits for what the device still does.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size_bytes, int device = 0);
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Elements that only the device may touch.
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data()), size_bytes_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(void* data) const;
  };
  std::size_t size_bytes_ = 0;
  std::unique_ptr<void, Free> data_;
};

/// Zeroed host memory that the system does not page out, for copies beside other work.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t size_bytes);
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data()), size_bytes_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(void* data) const;
  };
  std::size_t size_bytes_ = 0;
  std::unique_ptr<void, Free> data_;
};

/// Pins memory that is there already (slots in a shared window) for as long as this lives; the
/// memory must outlive it. What another range of this process has pinned stays that one's: it is
/// unpinned with it, so let it live until all copies are done.
class PinnedRange {
 public:
  explicit PinnedRange(std::span<std::byte> memory);

 private:
  struct Unregister {
    void operator()(void* data) const;
  };
  std::unique_ptr<void, Unregister> data_;
};

/// Enqueues a copy between any two places, of host or device. Beside other work only where host
/// memory is pinned. Copies may not overlap.
void copy(void* to, const void* from, std::size_t size_bytes, const Stream& stream);

}  // namespace fast::cuda
