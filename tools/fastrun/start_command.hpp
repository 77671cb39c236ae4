// The command that starts the wrappers of all ranks: the mpiexec of this program's
// MPI, or Slurm's srun.
#pragma once

#include <string>
#include <vector>

#include "fastrun.hpp"

namespace fastrun {

/// Within a Slurm job of several nodes, ranks are started by srun itself, unless the options name
/// hosts, an mpiexec or its options: srun goes on when a node fails, mpiexec's daemons do not.
bool starts_by_srun(const Options& options);

/// srun with its options.
std::vector<std::string> by_srun(const Options& options);

std::vector<std::string> start_command(const Options& options);

}  // namespace fastrun
