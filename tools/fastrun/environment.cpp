#include "environment.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "channel.hpp"
#include "host/cores.hpp"
#include "watch.hpp"

namespace fastrun {
namespace {

/// As Slurm has set them aside for each task. With more ranks than tasks, ranks share a host's.
int cores_of_a_rank(const Options& options) {
  const char* tasks = std::getenv("SLURM_NTASKS");
  const bool is_task = tasks == nullptr || all_ranks(options) <= std::atoi(tasks);
  if (const int cores = cores_of_a_slurm_task(options); cores > 0 && is_task) return cores;
  return std::max(1, usable_cores() / ranks_on_a_host(options));
}

/// Of libraries that would take all cores in every rank. All of them heed OMP_NUM_THREADS: what the
/// user has set holds, unless --threads is given.
void limit_threads(const Options& options) {
  if (options.threads == 0 && std::getenv("OMP_NUM_THREADS") != nullptr) return;
  const int each = cores_of_a_rank(options);
  const std::string threads = std::to_string(options.threads > 0 ? options.threads : each);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    setenv(name, threads.c_str(), options.threads > 0 ? 1 : 0);
}

/// By these mpiexec finds other hosts itself: Slurm, hydra, PBS, LSF, Grid Engine, LoadLeveler,
/// Cobalt.
constexpr const char* of_other_hosts[] = {"SLURM_JOB_ID", "HYDRA_HOST_FILE", "PBS_NODEFILE",
                                          "LSB_HOSTS",    "LSB_MCPU_HOSTS",  "LSB_DJOB_HOSTFILE",
                                          "PE_HOSTFILE",  "LOADL_HOSTFILE",  "COBALT_NODEFILE"};

/// A progress bar and a table would tear each other. In a file, and after a prefix, a bar is not
/// drawn in place.
void report_what_is_shown(const Options& options) {
  unsetenv(watch_variable);
  unsetenv(columns_variable);
  if (options.watch) {
    setenv(watch_variable, "1", 1);
  } else if (isatty(STDERR_FILENO) != 0 && !options.prefix && options.log_dir.empty()) {
    setenv(columns_variable, std::to_string(screen_size(STDERR_FILENO).width).c_str(), 1);
  }
}

}  // namespace

bool is_on_one_host(const Options& options) {
  return options.hosts.empty() && options.mpiexec_options.empty() &&
         std::none_of(std::begin(of_other_hosts), std::end(of_other_hosts),
                      [](const char* name) { return std::getenv(name) != nullptr; });
}

void set_environment(const Options& options, const ListeningAt& at) {
  const std::string addresses = is_on_one_host(options) ? "127.0.0.1" : own_addresses();
  const std::string text =
      fmt::format("{} {} {} {}", addresses, at.port, at.token, options.lost_after_s);
  setenv(launcher_variable, text.c_str(), 1);
  setenv(spares_variable, std::to_string(options.spares).c_str(), 1);
  limit_threads(options);
  report_what_is_shown(options);
}

}  // namespace fastrun
