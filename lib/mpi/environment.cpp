#include <fast/mpi/environment.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <fast/core/error.hpp>
#include <limits>

#include "mpi/impl.hpp"

namespace fast::mpi {
namespace {
constexpr Seconds patience_after_failure{10};
}

Environment::Environment(int& argc, char**& argv) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  int provided = MPI_THREAD_SINGLE;
  if (initialized == 0) {
    check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    owner_ = true;
  } else {
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  require(provided == MPI_THREAD_MULTIPLE, ErrorKind::mpi,
          "Environment: this MPI gives thread level {}, MPI_THREAD_MULTIPLE is required; use a "
          "build of MPI "
          "that has it",
          provided);
  std::signal(SIGUSR1, SIG_IGN);
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  world_ = std::make_unique<Communicator>(std::make_shared<Communicator::Impl>(copy));
}

Environment::~Environment() {
  if (!owner_) return;
  const bool failing = std::uncaught_exceptions() > 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const Deadline deadline(failing ? patience_after_failure
                                  : Seconds(std::numeric_limits<double>::infinity()));
  try {
    if (MPI_Ibarrier(world_->impl()->comm, &request) != MPI_SUCCESS || !wait(request, deadline)) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  } catch (const Error&) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  world_.reset();
  MPI_Finalize();
}

namespace {

void report(const std::exception& error, int rank) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr || known->to_be_reported_by(rank)) {
    std::fprintf(stderr, "error: %s\n", error.what());
    std::fflush(stderr);
  }
}

}  // namespace

int run(int& argc, char**& argv, const std::function<int(const Communicator& world)>& program) {
  int rank = 0;
  try {
    const Environment environment(argc, argv);
    rank = environment.world().rank();
    try {
      return program(environment.world());
    } catch (const std::exception& error) {  // told at once: the others may take their time to come
      report(error, rank);
      throw;
    }
  } catch (const std::exception& error) {
    return 1;
  }
}

}  // namespace fast::mpi
