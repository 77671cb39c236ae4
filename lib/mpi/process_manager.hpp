// What the process manager that started this process says of it, by environment variables.
#pragma once

#include <optional>

namespace fast::mpi {

/// A rank as its process manager numbers it, before MPI begins.
struct Started {
  const char* by = "";      ///< "the mpiexec of MPICH"
  const char* remedy = "";  ///< by what ranks of another MPI are to be started
  int rank = 0;
  int size = 0;         ///< 0: not said
  int here = 0;         ///< ranks of this host; 0: not said
  int number_here = 0;  ///< of this rank among those of this host; 0 also if it is not said
};

/// None if no process manager has started this process. Reads the variables of mpiexec, and of
/// srun with --mpi=pmi2 or --mpi=pmix, whichever MPI this library is built with. If there are those
/// of several process managers, one within the other, those of this library's MPI count.
std::optional<Started> started();

/// Waits, except on rank 0. Call it before an error that rank 0 alone prints, where ranks do not
/// wait for each other: some process managers end all ranks when one has ended with an error.
void let_rank_0_print();

/// Throws Error if MPI has found one rank where a process manager has started several: the usual
/// cause is the mpiexec of another MPI. Rank 0 gets Error(mpi), the others Error(peer_failed).
/// `library` is the MPI of this program, as library_version() names it.
void require_own_process_manager(int found_size, const char* library);

// Programs that a rank starts are no ranks, though they inherit the variables by which a rank finds
// its process manager and fastrun.

/// Environment variable of what a rank starts: the rank's process, rank and size, and its
/// connections to the process manager and to fastrun.
inline constexpr const char* place_variable = "FAST_DECENTRALIZED_PLACE";

/// Before MPI begins. Throws Error(argument) in a program that a rank has started. A rank of a
/// further mpiexec, which a rank has started, has connections of its own: it is one, and loses
/// those of that rank's fastrun.
void require_own_place();

/// For what this rank starts from now on. `rank`, `size`: its own.
void mark_children(int rank, int size);

}  // namespace fast::mpi
