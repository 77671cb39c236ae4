// The end of a program: ranks meet before they leave MPI. A rank that leaves while others wait for
// it elsewhere, as at the start of a Worker, tells them.
#pragma once

#include <fast/mpi/communicator.hpp>

#include <vector>

namespace fast::mpi {

/// From now on left_among() hears of ranks that leave over this communicator of all ranks, which
/// serves nothing else. With null it ends.
void hear_farewells(const Communicator* leaving);

/// Collective over that communicator. Waits for all ranks. A rank that has failed tells the others
/// at once that it leaves; another rank tells them if some are missing after three seconds. False
/// after the deadline, or if the launcher reports that a rank has ended.
bool meet_to_leave(const Communicator& leaving, const Deadline& deadline, bool failed);

/// Of a thread beside one that is in a call which does not end, before it ends the process: leaves
/// as a rank that fails because of others. Waits for all ranks, for ten seconds at most.
void leave_because_of_others() noexcept;

/// Of a thread that ends the process: writes out what programs print, but for a stream that another
/// thread is in.
void flush_what_is_free() noexcept;

struct Farewell {
  int place = 0;          ///< in the list that was given
  bool reported = false;  ///< it has failed and has reported why
  bool silent = false;    ///< it has failed because of others
};
/// This rank fails because of others, and does not report them. Its farewell says so.
void leave_the_report_to_others();
bool leaves_the_report_to_others();
/// Of such a rank, before it ends all: waits until the launcher says that one of these ranks of the
/// world has failed, which has reported. It waits a few seconds at most, and not without a
/// launcher.
void await_report(const std::vector<int>& ranks);

/// Which of these ranks of the world have told this rank that they leave.
std::vector<Farewell> left_among(const std::vector<int>& ranks);

// How a rank leaves MPI at the end.

/// Finalizes MPI. Call it when every rank has reached its end. Where MPI_Finalize may hang, or
/// complain about calls that ranks that have failed left open, this function only reports to the
/// process manager that this rank is done. MPI_Finalize may hang if a rank dies in it, so it is not
/// called under a launcher that would go on then. If the process manager has gone, it does nothing.
void leave(bool several_hosts, bool some_failed);

}  // namespace fast::mpi
