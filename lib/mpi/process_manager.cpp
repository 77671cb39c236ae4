#include "mpi/process_manager.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "mpi/implementation.hpp"
#include "mpi/launcher.hpp"

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

namespace {

constexpr const char* none = "none";      ///< no process manager
constexpr const char* closed = "closed";  ///< its descriptor was not inherited

struct Place {
  long process = 0;
  int rank = 0, size = 0;
  std::string manager, launcher;
};

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// What is open at the descriptor that a variable names, as "socket:[4711]": no other socket or
/// pipe of this machine has the number.
std::string open_at(const char* name) {
  const std::string descriptor = variable(name);
  if (descriptor.empty()) return none;
  std::array<char, 64> target{};
  const std::string link = "/proc/self/fd/" + descriptor;
  const ssize_t length = readlink(link.c_str(), target.data(), target.size() - 1);
  const std::string text(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return text.starts_with("socket:[") || text.starts_with("pipe:[") ? text : closed;
}

/// Of a process manager by PMI (a descriptor, or a port) or PMIx. No blanks.
std::string manager() {
  if (!variable("PMIX_NAMESPACE").empty())
    return fmt::format("{}.{}", variable("PMIX_NAMESPACE"), variable("PMIX_RANK"));
  if (!variable("PMI_PORT").empty())
    return fmt::format("{}/{}", variable("PMI_PORT"), variable("PMI_ID"));
  return open_at("PMI_FD");
}

/// Process 0: no rank has started this process.
Place place_of_parent() {
  Place place;
  std::istringstream words(variable(place_variable));
  words >> place.process >> place.rank >> place.size >> place.manager >> place.launcher;
  return place.process == getpid() || !words ? Place{} : place;
}

}  // namespace

void require_own_place() {
  const Place parent = place_of_parent();
  if (parent.process == 0) return;
  const std::string found = manager();
  require(found == none || (found != closed && found != parent.manager), ErrorKind::argument,
          "Environment: this process was started by rank {} of {} (process {}), whose place it "
          "cannot take; use the worker in that rank, or start this program by mpiexec -n 1",
          parent.rank, parent.size, parent.process);
  const std::string launcher = open_at(launcher_descriptor);
  if (launcher != closed && launcher != parent.launcher) return;
  for (const char* name : {launcher_descriptor, launcher_news, launcher_watch}) unsetenv(name);
}

void mark_children(int rank, int size) {
  const std::string place =
      fmt::format("{} {} {} {} {}", getpid(), rank, size, manager(), open_at(launcher_descriptor));
  setenv(place_variable, place.c_str(), 1);
}

}  // namespace fast::mpi
