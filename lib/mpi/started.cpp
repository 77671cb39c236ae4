#include "mpi/started.hpp"

#include <chrono>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <thread>

#include "mpi/implementation.hpp"

namespace fast::mpi {
namespace {

/// Variables of a process manager.
struct Variables {
  const char* mpi;
  const char *by, *remedy;
  const char *rank, *size, *here, *number_here;
};

constexpr const char* its_mpiexec = "the mpiexec of that MPI";

constexpr Variables known[] = {
    {"Open MPI", "the mpiexec of Open MPI", its_mpiexec, "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MPICH", "the mpiexec of MPICH", its_mpiexec, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS",
     "MPI_LOCALRANKID"},
    // Of neither: a process of Open MPI that is alone sets PMIX_RANK itself in MPI_Init.
    // SLURM_NTASKS may be that of the job: a shell of salloc is a step of one task.
    {"", "srun --mpi=pmix", "the mpiexec of that MPI, or by srun --mpi=pmi2", "PMIX_RANK",
     "SLURM_STEP_NUM_TASKS", "", "SLURM_LOCALID"},
};

/// 0 if it is not set.
int number_in(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

bool is_own(const Variables& variables) { return variables.mpi == implementation::name(); }

}  // namespace

std::optional<Started> started() {
  for (const bool own : {true, false}) {
    for (const Variables& variables : known) {
      if (is_own(variables) != own || std::getenv(variables.rank) == nullptr) continue;
      return Started{variables.by,
                     variables.remedy,
                     number_in(variables.rank),
                     number_in(variables.size),
                     number_in(variables.here),
                     number_in(variables.number_here)};
    }
  }
  return std::nullopt;
}

void let_rank_0_print() {
  const std::optional<Started> self = started();
  if (self && self->rank != 0) std::this_thread::sleep_for(std::chrono::seconds(2));
}

void require_own_process_manager(int found_size, const char* library) {
  const std::optional<Started> by = started();
  if (found_size != 1 || !by || by->size <= 1) return;
  let_rank_0_print();
  const ErrorKind kind = by->rank == 0 ? ErrorKind::mpi : ErrorKind::peer_failed;
  fail(kind,
       "Environment: {} started {} ranks, but each of them is alone: this program's MPI is {}; "
       "start the program by {}",
       by->by, by->size, library, by->remedy);
}

}  // namespace fast::mpi
