// MPI for the life of a program.
#pragma once

#include <fast/mpi/communicator.hpp>

#include <functional>
#include <memory>

namespace fast::mpi {

/// Initializes MPI (MPI_THREAD_MULTIPLE) unless the program has, and finalizes what it initialized.
/// MPICH before 4.2 on several hosts is an exception: its MPI_Finalize may hang and is not called.
/// Without mpiexec there is one rank. SIGUSR1, which MPICH's process manager sends to the survivors
/// of a death, is ignored; with Open MPI SIGPIPE too, which a broken connection raises. Throws
/// Error(mpi) if MPI lacks MPI_THREAD_MULTIPLE, and if the mpiexec of another MPI has started this
/// program: each rank would be alone (Error(peer_failed) on all ranks but one, two seconds later).
class Environment {
 public:
  Environment(int& argc, char**& argv);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  /// Waits for all ranks, after an exception at most a few seconds. If a rank is missing, ends the
  /// others (MPI_Abort).
  ~Environment();

  const Communicator& world() const { return *world_; }

  /// This program ends with an error, though no exception is passing: the end waits for the other
  /// ranks for `patience` at most.
  void end_as_failed(Seconds patience = Seconds(10)) {
    failed_ = true;
    patience_ = patience;
  }

  /// Does what the destructor does. False if ranks are gone, or if a WaitCheck has ended the wait:
  /// MPI was not finalized, and the program should end with _exit.
  bool depart();

 private:
  void settle() const;

  bool owner_ = false, failed_ = false;
  Seconds patience_{10};  ///< after a failure
  std::unique_ptr<Communicator> world_;
  /// It is for the end alone: a rank that fails leaves while others may be in a call of world().
  std::unique_ptr<Communicator> leaving_;
};

/// A main function: makes an Environment, runs `program` and returns its result. If `program`
/// throws, the error is printed to standard error once, not once per rank, and every rank returns
/// status 1.
int run(int& argc, char**& argv, const std::function<int(const Communicator& world)>& program);

/// Whether the launcher asks this rank to leave training before its end (`fastrun --control`), for
/// Worker::leave(). Costs two system calls. It is false without fastrun.
bool asked_to_leave();

/// The first line of what the MPI library calls itself: "MPICH Version: 4.0.2".
std::string library_version();

}  // namespace fast::mpi
