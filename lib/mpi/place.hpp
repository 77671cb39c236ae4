// Programs that a rank starts are no ranks, though they inherit the variables by which a rank finds
// its process manager and fastrun.
#pragma once

namespace fast::mpi {

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
