// The process that starts the ranks' wrappers: mpiexec or srun.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "fastrun/fastrun.hpp"
#include "fastrun/host.hpp"

namespace fastrun {

// What fastrun tells its ranks by environment variables.

/// Where a launcher listens.
struct ListeningAt {
  int port = 0;
  std::string token;
};

/// All ranks are here, whatever becomes of this machine's addresses.
bool is_on_one_host(const Options& options);

/// Sets the variables of this process, which the ranks inherit: where the launcher is, how many
/// spares there are, how many threads to take, and what fastrun shows.
void set_environment(const Options& options, const ListeningAt& at);

/// The process managers of MPI's implementations: how their mpiexec is told to start ranks whose
/// death does not end the others.
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

// The command that starts the wrappers of all ranks: the mpiexec of this program's
// MPI, or Slurm's srun.

/// Within a Slurm job of several nodes, ranks are started by srun itself, unless the options name
/// hosts, an mpiexec or its options: srun goes on when a node fails, mpiexec's daemons do not.
bool starts_by_srun(const Options& options);

/// srun with its options.
std::vector<std::string> by_srun(const Options& options);

std::vector<std::string> start_command(const Options& options);

class Starter {
 public:
  Starter() = default;
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  ~Starter() { end(); }

  /// Starts it in a process group of its own, with as many descriptors as fastrun was given. It
  /// ends with fastrun.
  void start(const Options& options, const DescriptorLimit& descriptors);
  /// "mpiexec", for messages.
  const std::string& name() const { return name_; }
  bool runs() const { return process_ > 0; }
  /// -1: it does not run.
  pid_t process() const { return process_; }
  /// After SIGCHLD: true when it has ended now.
  bool has_ended();
  void kill() const;
  /// Kills it and waits for its end.
  void end();

 private:
  std::string name_;
  pid_t process_ = -1;
};

}  // namespace fastrun
