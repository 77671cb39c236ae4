// Work of a device in order (streams) and marks in it (events).
#pragma once

#include <fast/core/deadline.hpp>

#include <memory>

namespace fast::cuda {

class Event;

/// Work enqueued on a stream is done in order, beside that of other streams and of the calling
/// thread. Owning and moveable; its end waits for nothing. Functions that take a stream return once
/// the work is enqueued, and what it touches must stay until it is done. Throws Error(resource) as
/// cuda::device() does, and when CUDA fails.
class Stream {
 public:
  explicit Stream(int device = 0);
  int device() const { return device_; }
  void* handle() const { return handle_.get(); }  ///< its cudaStream_t

  /// What is enqueued from now on begins after the event's mark, on whatever stream it was made.
  void wait_for(const Event& event) const;
  /// Blocks until all that was enqueued is done. Error(deadline) names the limit.
  void synchronize(const Deadline& deadline) const;

 private:
  struct Destroy {
    void operator()(void* handle) const;
  };
  int device_;
  std::unique_ptr<void, Destroy> handle_;
};

/// A mark in a stream's work.
class Event {
 public:
  explicit Event(int device = 0);
  void* handle() const { return handle_.get(); }  ///< its cudaEvent_t

  /// Marks what `stream`, of the same device, has been given up to now; forgets an older mark.
  void record(const Stream& stream);
  /// True when all up to the mark is done, and when there is no mark. Error(resource) when a kernel
  /// before it failed.
  bool done() const;
  /// Blocks until done(). Error(deadline) names the limit.
  void synchronize(const Deadline& deadline) const;

 private:
  struct Destroy {
    void operator()(void* handle) const;
  };
  int device_;
  std::unique_ptr<void, Destroy> handle_;
};

}  // namespace fast::cuda
