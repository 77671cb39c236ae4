// Exchanges of payloads that lie in a device's memory, through the host's slots.
#pragma once

#include <fast/exchange/exchange.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace fast {

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

/// Wherever the neighbors are, and whatever they compute on: publish() copies the device's payload
/// down, fetch() the sources' up, both through pinned memory (slots of a page or more). `host` is
/// opened with `shape` itself. Workers that are threads of one process keep their works until all
/// have finished, as one pins for the others.
std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work);

}  // namespace fast
