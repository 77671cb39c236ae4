// What the modules mpi and exchange share of MPI itself.
#pragma once

#include <mpi.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <fast/core/deadline.hpp>
#include <fast/mpi/communicator.hpp>
#include <string_view>
#include <vector>

namespace fast::mpi {

struct Communicator::Impl {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::vector<int> world_ranks;  ///< by rank, its number among all ranks of the program
  std::atomic<bool> without_collectives{false};  ///< ranks are gone: no collective call any more
  bool skips_prefault = false;  ///< this rank's parts of windows, as they may stay unused
  std::size_t most_bytes_at_once = INT_MAX;  ///< MPI counts in int; the same on all ranks

  /// Takes ownership and lets MPI return errors.
  explicit Impl(MPI_Comm owned);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();
};

/// Collective. A communicator of the same ranks, whose calls match no others.
Communicator duplicate(const Communicator& communicator, const Deadline& deadline,
                       std::string_view purpose);

/// Throws Error(mpi) with MPI's text unless `code` is MPI_SUCCESS.
void check(int code, std::string_view call);

}  // namespace fast::mpi
