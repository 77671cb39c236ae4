// MPI for the life of a program.
#pragma once

#include <fast/mpi/communicator.hpp>

#include <functional>
#include <memory>

namespace fast::mpi {

/// Initializes MPI (MPI_THREAD_MULTIPLE) unless the program has, and finalizes what it initialized
/// (but see lib/mpi/leave.hpp for MPICH before 4.2 on several hosts).
/// Started without mpiexec there is one rank. SIGUSR1, which MPICH's process manager sends to
/// survivors of a death, is ignored. Error(mpi) when MPI lacks MPI_THREAD_MULTIPLE.
class Environment {
 public:
  Environment(int& argc, char**& argv);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  /// Waits a few seconds for all ranks; when some do not come, ends those that still run
  /// (MPI_Abort).
  ~Environment();

  const Communicator& world() const { return *world_; }

  /// What the destructor does, told of its outcome: false when ranks are gone, so that MPI was not
  /// finalized and the process is best ended by _exit.
  bool depart();

 private:
  void settle() const;

  bool owner_ = false;
  std::unique_ptr<Communicator> world_;
};

/// A main function: makes an Environment, runs `program`, and gives its result as the exit status.
/// A fast::Error is printed to standard error once, not once a rank, and every rank ends with
/// status 1.
int run(int& argc, char**& argv, const std::function<int(const Communicator& world)>& program);

}  // namespace fast::mpi
