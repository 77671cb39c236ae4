// What the modules mpi and exchange share of MPI itself.
#pragma once

#include <mpi.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <fast/core/deadline.hpp>
#include <fast/mpi/communicator.hpp>
#include <functional>
#include <memory>
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
  ~Impl();
};

/// Collective. A communicator of the same ranks, whose calls match no others.
Communicator duplicate(const Communicator& communicator, const Deadline& deadline,
                       std::string_view purpose);

/// Collective. Makes a collective call of MPI that blocks. If the launcher reports deaths, it is
/// made on a thread of its own: the thread stays in the call for good if a rank is missing, and
/// with it what `call` owns. This rank then gets the error of a barrier that a rank is missing in.
/// `call` returns MPI's code, of the function `name`. Call it after a barrier: MPI waits without
/// yielding the core.
void call_together(const Communicator& ranks, const Deadline& deadline, std::string_view purpose,
                   std::string_view name, std::function<int()> call);

/// The same, for a call that fills in a result.
template <class Result, class Call>
Result call_together(const Communicator& ranks, const Deadline& deadline, std::string_view purpose,
                     std::string_view name, Call call) {
  const auto result = std::make_shared<Result>();
  call_together(ranks, deadline, purpose, name,
                [result, call = std::move(call)] { return call(*result); });
  return *result;
}

/// A call of call_together() does not end: MPI_Finalize would not either.
bool some_call_is_stuck();

/// Throws Error(mpi) with MPI's text unless `code` is MPI_SUCCESS.
void check(int code, std::string_view call);

}  // namespace fast::mpi
