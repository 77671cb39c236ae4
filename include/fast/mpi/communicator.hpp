// Owning types for the parts of MPI that the library uses. Programs need not include <mpi.h>.
#pragma once

#include <fast/core/deadline.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::mpi {

/// A communicator by value: a shared handle of a duplicate of the origin. Errors are exceptions:
/// Error(mpi) with MPI's own text. Waits poll nonblocking calls: they yield the core and end by
/// their deadline.
class Communicator {
 public:
  struct Impl;
  explicit Communicator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  int rank() const;
  int size() const;

  /// Collective. The ranks of this rank's host, which share its memory.
  Communicator same_host(const Deadline& deadline) const;

  /// Collective. The ranks that give the same color (0 or more), in the same order.
  Communicator split(int color, const Deadline& deadline) const;

  /// Collective. Every rank's bytes, by rank.
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) const;
  /// Collective.
  void barrier(const Deadline& deadline, std::string_view purpose) const;

  /// Call it if ranks are gone. No collective call is made on this communicator any more. A program
  /// that has given up its world ends without MPI_Finalize, which would wait for those ranks.
  void disable_collectives() const;

  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

/// Host memory in an MPI shared window, one zeroed, page-aligned part a rank, first touched by its
/// owner.
class SharedWindow {
 public:
  /// Collective over ranks of one host. Error(resource) on every rank, before anything is
  /// allocated, when /dev/shm has too little room.
  SharedWindow(const Communicator& host, std::size_t bytes_per_rank, const Deadline& deadline);
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;
  /// Does not block. The last rank of those that live returns the memory to the system. The window
  /// itself is freed when its ranks meet to allocate the next one.
  ~SharedWindow();

  std::byte* part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<std::byte*> parts_;
};

// Messages from one rank to another, for data of a program's own: activations of a model that is
// split over ranks, for example.

/// Messages between two ranks of a communicator arrive in the order in which they were sent. One
/// thread uses an object. A message has at most 2³¹ - 1 bytes; longer ones throw Error(argument).
class PointToPoint {
 public:
  /// Collective over the communicator. Messages of other objects are not received here.
  PointToPoint(const Communicator& communicator, const Deadline& deadline);
  PointToPoint(PointToPoint&&) noexcept;
  PointToPoint& operator=(PointToPoint&&) noexcept;
  /// Waits a tenth of a second at most for messages that nobody has received yet.
  ~PointToPoint();

  int rank() const;
  int size() const;

  /// Copies the bytes and returns without waiting for the receiver. If MPI cannot reach it, throws
  /// Error(peer_failed) if the launcher (fastrun) reports that this rank has ended, else
  /// Error(mpi).
  void send(int rank, std::span<const std::byte> bytes);

  /// Blocks until the next message of `rank` has arrived, which has at most this size. Throws
  /// Error(peer_failed) if the launcher (fastrun) reports that this rank has ended,
  /// Error(deadline) if no message came in time, and Error(mpi) if the message is longer. After an
  /// error the messages of this rank are lost.
  void receive(int rank, std::span<std::byte> into, const Deadline& deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::mpi
