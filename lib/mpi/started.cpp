#include "mpi/started.hpp"

#include <algorithm>
#include <cstdlib>
#include <fast/core/error.hpp>

namespace fast::mpi {
namespace {

/// Variables of a process manager.
struct Variables {
  const char* mpi;
  const char *rank, *size, *here;
};

constexpr Variables known[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"Open MPI", "PMIX_RANK", "SLURM_NTASKS", ""},  // srun --mpi=pmix
};

int number_in(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

std::optional<Started> started() {
  for (const Variables& variables : known) {
    if (std::getenv(variables.rank) == nullptr) continue;
    return Started{variables.mpi, number_in(variables.rank, 0), number_in(variables.size, 1),
                   number_in(variables.here, 0)};
  }
  return std::nullopt;
}

void require_own_process_manager(int found_size, const char* library) {
  const std::optional<Started> by = started();
  if (found_size != 1 || !by || by->size <= 1) return;
  const ErrorKind kind = by->rank == 0 ? ErrorKind::mpi : ErrorKind::peer_failed;
  fail(kind,
       "Environment: the mpiexec of {} started {} ranks, but each of them is alone: this program's "
       "MPI is {}; start the program by the mpiexec of that MPI",
       by->by, by->size, library);
}

}  // namespace fast::mpi
