// The process managers of MPI's implementations: how their mpiexec is told to start ranks whose
// death does not end the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fastrun.hpp"

namespace fastrun {

struct ProcessManager {
  const char* mpi;          ///< "MPICH"
  const char* title;        ///< "MPICH's hydra"
  const char* announces;    ///< within what its mpiexec --version prints
  const char* package;      ///< Debian's
  const char* command;      ///< Debian's name of its mpiexec, beside others
  const char* srun_plugin;  ///< of srun --mpi=...
  /// Options of its mpiexec that no job goes without.
  std::vector<std::string> always;
  /// The words after mpiexec up to the program.
  std::vector<std::string> (*words)(const Options& options);
};

/// Of the MPI with which this fastrun is built.
const ProcessManager& own_process_manager();

/// Of the mpiexec that prints this as its version; null if it is unknown.
const ProcessManager* process_manager_that_says(std::string_view version);

}  // namespace fastrun
