// Owning types for the few things of MPI that the library uses. <mpi.h> stays in the sources.
#pragma once

#include <fast/core/deadline.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::mpi {

/// A communicator by value (a shared handle), duplicated from its origin, errors as exceptions:
/// Error(mpi) with MPI's own text. Waits are nonblocking calls with back-off, so that they give the
/// core away and end by their deadline.
class Communicator {
 public:
  struct Impl;
  explicit Communicator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  int rank() const;
  int size() const;

  /// Collective. The ranks that share this one's host and memory.
  Communicator same_host(const Deadline& deadline) const;

  /// Collective. Every rank's bytes, by rank.
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) const;
  /// Collective.
  void barrier(const Deadline& deadline, std::string_view purpose) const;

  /// Ranks are gone: from now on no collective call is made on it, and a program that has given up
  /// its world ends without finalizing MPI, which would wait for them.
  void give_up() const;

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
  /// Frees the window once all ranks have come; after a few seconds without them it is left to the
  /// system.
  ~SharedWindow();

  std::byte* part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<std::byte*> parts_;
};

}  // namespace fast::mpi
