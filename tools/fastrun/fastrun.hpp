// The parts of fastrun: see main.cpp for what it is.
#pragma once

#include <string>
#include <vector>

#include "core/descriptor.hpp"

namespace tools {
class Command;
}

namespace fastrun {

struct Options {
  int ranks = 1;  ///< workers
  int spares = 0;
  std::string hosts;
  int ranks_per_host = 0;
  double start_deadline_s = 30;
  double launch_deadline_s = 300;
  double lost_after_s = 30;
  int min_workers = 1;
  std::string control;          ///< a file; empty: none
  std::vector<double> grow_at;  ///< seconds after training began when a spare joins
  int threads = 0;
  bool watch = false;
  bool prefix = false;  ///< each line of a rank's output begins with its number
  std::string log_dir;  ///< a folder with one file of output per rank; empty: none
  std::string mpiexec = "mpiexec";
  std::vector<std::string> mpiexec_options;
  std::vector<std::string> program;
};

/// Workers and spares.
inline int all_ranks(const Options& options) { return options.ranks + options.spares; }

/// Environment variable that tells a program how many of its ranks are spares.
inline constexpr const char* spares_variable = "FASTRUN_SPARES";

/// Environment variable that tells a program its rank, whichever MPI it uses.
inline constexpr const char* rank_variable = "FASTRUN_RANK";

/// Environment variable: set when fastrun shows how far the ranks are. They then say so.
inline constexpr const char* watch_variable = "FASTRUN_WATCH";

/// Environment variable: the width of the terminal that shows what the ranks print.
inline constexpr const char* columns_variable = "FASTRUN_COLUMNS";

// The command line.

/// Adds the options. What follows them is the program: CLI::App::remaining(). No option takes it
/// for a value of its own.
void describe(tools::Command& command, Options& options, bool& doctor);

/// Turns "-np", as other launchers have it, into "-n": of the options of fastrun alone, not of the
/// program that follows them.
void take_np_for_n(const tools::Command& command, int argc, char** argv);

/// What is wrong with options that are good each by itself; empty: nothing.
std::string contradiction(const Options& options);

/// The most that a host has when ranks are spread evenly over --hosts, or over those of a Slurm
/// job.
int ranks_on_a_host(const Options& options);

/// --cpus-per-task of the Slurm job whose nodes the ranks use; 0: not given.
int cores_of_a_slurm_task(const Options& options);

/// Blocks the signals that fastrun hears, and gives a descriptor to read them from (signalfd).
/// SIGHUP stays ignored where nohup has left it so. SIGPIPE is ignored.
fast::Descriptor signals_to_hear();

/// Starts mpiexec or srun with a wrapper a rank, watches them and returns the exit status.
int launch(const Options& options);

/// Environment variable through which a wrapper finds its launcher: "ADDRESSES PORT TOKEN SECONDS".
/// After so many seconds without an answer of the other host, each takes the other for lost.
inline constexpr const char* launcher_variable = "FASTRUN_AT";

/// Runs one rank's program in a session of its own and stays until all ranks have ended, holding
/// the process manager's descriptor open so that it does not end the others when this one dies.
/// When the launcher has gone, the rank is killed.
int wrap(const std::vector<std::string>& program);

/// Checks what runs need, prints it with what would fix it. 0 when all is well.
int examine(const Options& options);

}  // namespace fastrun
