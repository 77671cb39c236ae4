// Work of a device in order (streams) and marks in it (events).
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/cuda/handle.hpp>

namespace fast::cuda {

class Event;
void destroy_stream(void* stream);
void destroy_event(void* event);

/// Work enqueued on a stream is done in order, beside that of other streams and of the calling
/// thread. Owning and moveable; its end waits for nothing. Functions that take a stream return once
/// the work is enqueued, and what it touches must stay until it is done. handle() is its
/// cudaStream_t. Throws Error(resource) as cuda::device() does, and when CUDA fails.
class Stream : public DeviceHandle<destroy_stream> {
 public:
  explicit Stream(int device = 0);

  /// What is enqueued from now on begins after the event's mark, on whatever stream it was made.
  void wait_for(const Event& event) const;
  /// Blocks until all that was enqueued is done. Error(deadline) names the limit.
  void synchronize(const Deadline& deadline) const;
};

/// A mark in a stream's work. handle() is its cudaEvent_t.
class Event : public DeviceHandle<destroy_event> {
 public:
  explicit Event(int device = 0);

  /// Marks what `stream`, of the same device, has been given up to now; forgets an older mark.
  void record(const Stream& stream);
  /// True when all up to the mark is done, and when there is no mark. Error(resource) when a kernel
  /// before it failed.
  bool done() const;
  /// Blocks until done(). Error(deadline) names the limit.
  void synchronize(const Deadline& deadline) const;
};

}  // namespace fast::cuda
