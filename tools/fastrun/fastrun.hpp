// The parts of fastrun: see main.cpp for what it is.
#pragma once

#include <string>
#include <vector>

namespace fastrun {

struct Options {
  int ranks = 1;
  std::string hosts;
  int ranks_per_host = 0;
  double start_deadline_s = 30;
  double launch_deadline_s = 300;
  int min_workers = 1;
  int threads = 0;
  std::string mpiexec = "mpiexec";
  std::vector<std::string> mpiexec_options;
  std::vector<std::string> program;
};

/// The most that a host has when ranks are spread evenly over --hosts, or over those of a Slurm
/// job.
int ranks_on_a_host(const Options& options);

/// Starts mpiexec with a wrapper a rank, watches them and returns the exit status.
int launch(const Options& options);

/// Environment variables through which a wrapper finds its launcher: "ADDRESSES PORT TOKEN".
inline constexpr const char* launcher_variable = "FASTRUN_AT";

/// Runs one rank's program and stays until all ranks have ended, holding the process manager's
/// descriptor open so that it does not end the others when this one dies.
int wrap(const std::vector<std::string>& program);

/// Checks what runs need, prints it with what would mend it. 0 when all is well.
int examine(const Options& options);

}  // namespace fastrun
