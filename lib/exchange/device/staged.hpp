// Exchanges of payloads that lie in a device's memory, through the host's slots.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/exchange.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace fast {

class Peers;

namespace codec {
struct HostMessage;
}

/// What an exchange needs from a device: memory and an ordered queue of work.
class DeviceWork {
 public:
  /// `deadline`: of a wait.
  explicit DeviceWork(Seconds deadline = Seconds(300)) : deadline_(deadline) {}
  virtual ~DeviceWork() = default;
  /// Zeroed memory that both sides of copy() may be in. It is kept to the process's end if it is
  /// released while a work hangs, as is allocate_on_host()'s: to free it would wait for that work.
  std::shared_ptr<std::byte> allocate(std::size_t size_bytes);
  /// Counts memory that was shared by other means until the result is released, and keeps it
  /// likewise.
  std::shared_ptr<void> hold(std::shared_ptr<void> memory, std::size_t size_bytes);
  /// Bytes of the device that are allocated here and not released.
  std::size_t held() const { return *held_; }
  /// Enqueues a copy, from or to host memory too.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) = 0;
  /// Pins host memory, so that copies from and to it run at full speed, until the result is
  /// released. The memory must live longer.
  virtual std::shared_ptr<void> pin(std::span<const std::byte> memory) = 0;
  /// Marks what this queue has so far. The result blocks until that is done, on any thread. Throws
  /// if a work has failed, and Error(deadline). Then the next waits are short until one succeeds: a
  /// work that hangs costs one deadline, however many wait for it.
  std::function<void()> mark();
  /// Blocks until all work of this queue is done.
  void settle() { mark()(); }
  /// Zeroed host memory that copy() takes at full speed, and without a wait.
  std::shared_ptr<std::byte> allocate_on_host(std::size_t size_bytes);
  /// Another queue of the same device, for another thread.
  virtual std::shared_ptr<DeviceWork> beside() = 0;
  /// Called first on a thread of the library's own. What this thread does then leaves alone what
  /// the program captures on its threads, as a graph of CUDA.
  virtual void begin_thread() {}

 protected:
  virtual std::shared_ptr<std::byte> make_memory(std::size_t size_bytes) = 0;
  virtual std::shared_ptr<std::byte> make_host_memory(std::size_t size_bytes) = 0;
  /// As mark(), by that deadline.
  virtual std::function<void(const Deadline&)> make_mark() = 0;
  Seconds deadline() const { return deadline_; }

 private:
  Seconds deadline_;
  std::shared_ptr<std::atomic<bool>> hangs_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<std::size_t>> held_ = std::make_shared<std::atomic<std::size_t>>(0);
};

/// Reads of the parts of workers of other hosts.
class RemoteReads {
 public:
  virtual ~RemoteReads() = default;
  /// Blocks until the read of a worker's bytes [offset, offset + size_bytes) into `to` has ended.
  /// If a connection breaks, it may end without the bytes. goes_on() is called from time to time:
  /// when it returns false, so does read(), and `to` must stay valid, because MPI may still write
  /// to it. Throws Error(mpi).
  virtual bool read(int worker, std::size_t offset, void* to, std::size_t size_bytes,
                    const std::function<bool()>& goes_on) = 0;
};

/// Memory of the workers' devices, as one worker can read it.
struct DeviceRegion {
  int rank = 0;  ///< of this worker
  /// By rank; null: this worker cannot load from it. A mapping of another process's memory ends
  /// with its last pointer.
  std::vector<std::shared_ptr<std::byte>> parts;
  std::vector<std::string> why_not;  ///< by rank: one line where the part is null
  std::size_t part_bytes = 0;
  std::shared_ptr<void> owner;         ///< keeps this worker's own part
  std::shared_ptr<RemoteReads> reads;  ///< of parts that are null; none: these are staged
  bool everywhere = false;             ///< every worker reads all parts by loads or reads
  bool mapped = false;                 ///< every worker loads from all parts
};

/// A worker's payloads, its device, and the device memory that others can read.
struct Staging {
  PayloadShape shape;
  std::shared_ptr<DeviceWork> work{};
  DeviceRegion region{};
  Seconds deadline{300};  ///< of a read from another host's device
  bool exact = false;     ///< staleness 0
  /// Where a publication has the worker's weights. at_the_end: in host memory, if it is one that is
  /// made for them, as that of a worker that finishes; messages have none.
  enum class Weights { vector, beside, at_the_end } weights = Weights::vector;
  /// Codes messages on their way through host memory, and rounds them on the device to what readers
  /// decode. They have HostMessage::packed_bytes a vector there. Null: they stay as they are.
  std::shared_ptr<codec::HostMessage> message{};
  std::stop_source stop{
      std::nostopstate};  ///< ends the waits of the host's exchange at destruction
  /// The part of the payloads that a round reads is all that is uploaded or read of other devices.
  /// Null: all.
  EdgePlan plan{};
  /// Called by the background thread when the device has done what complete() was told.
  std::function<void(std::int64_t rounds)> completed{};
  /// Whether a worker will not be back. The memory for what is copied of it is then given back, and
  /// the mapping of its part ends, once it is not read. Null: nobody knows.
  std::function<bool(int worker)> is_gone{};
};

/// An exchange of device payloads over `host`, an exchange in host memory, which was opened with
/// host_shape(), and at staleness 0 with ExchangeOptions::payloads 2.
///
/// - A publication is downloaded from the device, and the sources' payloads are uploaded. Both go
///   through pinned memory if slots have a page or more.
/// - With a region, a worker's payloads are in its own part, and a source's part that this worker
///   can load from is not uploaded. If this holds for all workers, the host's slots have only
///   scalars and, for mean models, the weights. If all workers are mapped, weights are copied there
///   only for publications that are no neighbor's message, and as Exchange::keep_weights() asks, as
///   a worker does that finishes.
/// - publish(), complete() and begin_fetch() return immediately: a background thread waits for the
///   device and for the other workers, and copies, on a queue beside `work`. Each of them, and
///   acquire(), ends the fetch that has begun and that nobody has taken up, and so does a fetch()
///   whose wait a WaitCheck ends.
/// - At staleness 0, is_intact() does not wait for the device. If a neighbor goes on without this
///   worker later, while its payload is read, nobody reads the publication made of it, unless it is
///   the last one, and all arrivals of the next fetch() are torn.
/// - Above staleness 0, the background thread copies all payloads, also mapped ones, to memory of
///   this worker, and looks whether they are whole. One that has changed during three copies is
///   torn.
/// - With Staging::message, the background thread downloads each message, codes it, and uploads
///   what its readers decode: to this worker's own payload, which mapped readers read. Others get
///   the code, and decode it before they upload it.
std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, Staging staging);
/// The shape of the host's payloads, if vector 0 is the weights or the weights are beside it.
PayloadShape host_shape(const PayloadShape& shape, const DeviceRegion& region);
/// Of a worker's part of a region, without regard to Staging::region.
std::size_t staged_bytes(const Staging& staging);

/// Peers whose weights are read where they are, for links whose workers are all mapped. `host` are
/// those of the host's link. Parts must be kept by someone else: by the staged exchange.
std::shared_ptr<Peers> mapped_peers(std::shared_ptr<Peers> host, const Staging& staging);

}  // namespace fast
