// Owners of resources of CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace fast::cuda {

template <void (*release)(void*)>
struct Release {
  void operator()(void* what) const { release(what); }
};
/// Owns a handle. Movable. Null is empty.
template <void (*release)(void*)>
using Handle = std::unique_ptr<void, Release<release>>;

/// A resource of one device.
template <void (*release)(void*)>
class DeviceHandle {
 public:
  int device() const { return device_; }
  void* handle() const { return handle_.get(); }

 protected:
  DeviceHandle(void* handle, int device) : device_(device), handle_(handle) {}

 private:
  int device_;
  Handle<release> handle_;
};

/// Memory, aligned to 256 bytes.
template <void (*release)(void*)>
class Buffer {
 public:
  Buffer() = default;
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data()), size_bytes_ / sizeof(T)};
  }

 protected:
  Buffer(void* data, std::size_t size_bytes) : size_bytes_(size_bytes), data_(data) {}

 private:
  std::size_t size_bytes_ = 0;
  Handle<release> data_;
};

}  // namespace fast::cuda
