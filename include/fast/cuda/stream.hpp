// Queues of work of a device (streams) and marks in them (events).
#pragma once

#include <fast/core/deadline.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace fast::cuda {

/// Owners of resources of CUDA.
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

class Event;
void destroy_stream(void* stream);
void destroy_event(void* event);

/// Work on a stream runs in order. It runs beside work on other streams and beside the calling
/// thread. Movable. The destructor does not wait. Functions with a stream as argument return once
/// the work is enqueued. The memory that the work uses must exist until the work is done. handle()
/// is the cudaStream_t. Throws Error(resource) as cuda::device() does, and if CUDA fails.
class Stream : public DeviceHandle<destroy_stream> {
 public:
  explicit Stream(int device = 0);

  /// Work enqueued from now on starts after the mark of the event, which may be on any stream.
  void wait_for(const Event& event) const;
  /// Blocks until all enqueued work is done. Error(deadline) names the limit.
  void synchronize(const Deadline& deadline) const;
};

/// A mark in the work of a stream. handle() is the cudaEvent_t.
class Event : public DeviceHandle<destroy_event> {
 public:
  explicit Event(int device = 0);

  /// Marks the work enqueued on `stream` so far. The stream must be of the same device. An older
  /// mark is forgotten.
  void record(const Stream& stream);
  /// True if all work up to the mark is done, or if there is no mark. Error(resource) if a kernel
  /// before the mark failed.
  bool done() const;
  /// Blocks until done(). Error(deadline) names the limit.
  void synchronize(const Deadline& deadline) const;
};

}  // namespace fast::cuda
