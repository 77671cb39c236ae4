// Messages from one rank to another, for data of a program's own: activations of a model that is
// split over ranks, for example.
#pragma once

#include <fast/mpi/communicator.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace fast::mpi {

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
