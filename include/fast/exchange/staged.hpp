// Exchanges of payloads that lie in a device's memory, through the host's slots.
#pragma once

#include <fast/exchange/exchange.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
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
  /// Blocks until all that was enqueued in this order, by whomever, is done.
  virtual void settle() = 0;
  /// The same device's, in an order of its own, for a thread of its own.
  virtual std::shared_ptr<DeviceWork> beside() = 0;
};

/// Reads of what workers of other hosts have in their parts.
class RemoteReads {
 public:
  virtual ~RemoteReads() = default;
  /// Blocks until a worker's bytes [offset, offset + size_bytes) are at `to`, or are known not to
  /// come: broken connections may end so. False when goes_on(), asked now and then, has said no:
  /// `to` may still be written to, and must stay. Throws Error(mpi).
  virtual bool read(int worker, std::size_t offset, void* to, std::size_t size_bytes,
                    const std::function<bool()>& goes_on) = 0;
};

/// Memory of the workers' devices, as far as one of them can read it.
struct DeviceRegion {
  int rank = 0;                      ///< of this worker
  std::vector<std::byte*> parts;     ///< by rank; null: cannot be read from here
  std::vector<std::string> why_not;  ///< by rank: one line where the part is null
  std::size_t part_bytes = 0;
  std::shared_ptr<void> owner;         ///< keeps the mappings
  std::shared_ptr<RemoteReads> reads;  ///< of parts that are null; none: those are staged
  bool everywhere = false;  ///< every worker reads every other's part in one of these ways
};

/// What a worker's payloads are and go through.
struct Staging {
  PayloadShape shape;
  std::shared_ptr<DeviceWork> work;
  DeviceRegion region{};
  Seconds deadline{300};                    ///< of a read from another host's device
  std::stop_source stop{std::nostopstate};  ///< ends the host's waits when all is given up
};

/// Wherever the neighbors are, and whatever they compute on: a publication is copied down from the
/// device, the sources' are copied up, both through pinned memory (slots of a page or more). With a
/// region of such parts a worker's payloads are in its own, and of sources whose parts can be read
/// from here nothing is copied up; where that holds everywhere the host has scalars and, for mean
/// models, the weights alone. publish() and begin_fetch() return at once: a thread copies, by work
/// beside `work`, and waits for the others. `host` is opened with host_shape() and used by one
/// thread at a time.
std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, Staging staging);
/// Of payloads whose vector 0 is the weights as they are, unless those are beside it.
PayloadShape host_shape(const PayloadShape& shape, const DeviceRegion& region);
std::size_t staged_bytes(const PayloadShape& shape);

}  // namespace fast
