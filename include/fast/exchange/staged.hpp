// Exchanges of payloads that lie in a device's memory, through the host's slots.
#pragma once

#include <fast/exchange/exchange.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fast {

/// What an exchange asks of a device: memory, and work in order.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  /// Zeroed memory that both sides of copy() may be in.
  virtual std::shared_ptr<std::byte> allocate(std::size_t size_bytes) = 0;
  /// Enqueues a copy, from or to host memory too.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) = 0;
  /// Lets copies from and to that host memory run at full speed for as long as somebody holds what
  /// is returned; the memory outlives that.
  virtual std::shared_ptr<void> pin(std::span<const std::byte> memory) = 0;
  /// Blocks until all that was enqueued, by whomever, is done.
  virtual void settle() = 0;
};

/// Memory of the workers' devices, as far as one of them can read it.
struct DeviceRegion {
  int rank = 0;                      ///< of this worker
  std::vector<std::byte*> parts;     ///< by rank; null: cannot be read from here
  std::vector<std::string> why_not;  ///< by rank: one line where the part is null
  std::size_t part_bytes = 0;
  std::shared_ptr<void> owner;  ///< keeps the mappings
};

/// Wherever the neighbors are, and whatever they compute on: publish() copies the device's payload
/// down, fetch() the sources' up, both through pinned memory (slots of a page or more). `host` is
/// opened with `shape` itself. With a region of such parts a worker's payloads are in its own, and
/// of sources whose parts can be read from here nothing is copied up.
std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work,
                                          DeviceRegion region = {});
std::size_t staged_bytes(const PayloadShape& shape);

}  // namespace fast
