// Exchanges of payloads that lie in device memory, behind the interface of fast/exchange: counters,
// waits, suspects and deadlines stay those of the host, the bytes are the device's.
#pragma once

#include <fast/cuda/region.hpp>
#include <fast/cuda/stream.hpp>
#include <fast/exchange/exchange.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace fast::cuda {

/// What an exchange asks of a device: memory, and work in order.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  /// Zeroed memory that both sides of copy() may be in.
  virtual std::shared_ptr<std::byte> allocate(std::size_t size_bytes) = 0;
  /// Enqueues a copy, from or to host memory too.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) = 0;
  /// Lets copies from and to that host memory run at full speed; once for each memory, which must
  /// outlive the work.
  virtual void pin(std::span<const std::byte> memory) = 0;
  /// Blocks until all that was enqueued, by whomever, is done.
  virtual void settle() = 0;
};

/// The work of one stream; settle() has that deadline. The stream must outlive it.
std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline = Seconds(300));

/// Slots in memory that neighbors map (share_memory): publishing copies nothing, and a kernel
/// reads neighbors' slots where they are. `control` moves counters and scalars only; open it with
/// control_shape(). Kernels that write or read slots go to the stream of `work`: publish() moves
/// the counter after all of them are done, stands() and complete() look after them. fetch() throws
/// Error(resource) with DeviceRegion::why_not for a source that cannot be mapped.
std::unique_ptr<Exchange> mapped_exchange(std::unique_ptr<Exchange> control, DeviceRegion region,
                                          const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work);
/// Of the region for payloads of that shape.
std::size_t mapped_bytes(const PayloadShape& shape);
PayloadShape control_shape(const PayloadShape& shape);

/// Payloads that go through the host's slots, wherever the neighbors are: publish() copies the
/// device's payload down, fetch() the sources' up, both through pinned memory (slots of a page or
/// more). `host` is opened with `shape` itself. Workers that are threads of one process keep their
/// works until all have finished, as one pins for the others.
std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work);

}  // namespace fast::cuda
