#include "start_command.hpp"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fast/core/error.hpp>

namespace fastrun {
namespace {

std::string own_path() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  fast::require(length > 0, fast::ErrorKind::resource, "fastrun: /proc/self/exe cannot be read");
  return path;
}

bool in_slurm_job_of_several_nodes() {
  const char* nodes = std::getenv("SLURM_NNODES");
  return std::getenv("SLURM_JOB_ID") != nullptr && nodes != nullptr && std::atoi(nodes) > 1;
}

/// Slurm's way to connect MPICH's ranks.
bool srun_has_pmi2() {
  FILE* list = popen("srun --mpi=list 2>&1", "r");
  if (list == nullptr) return false;
  std::string text;
  std::array<char, 512> buffer;
  while (std::fgets(buffer.data(), buffer.size(), list) != nullptr) text += buffer.data();
  return pclose(list) == 0 && text.find("pmi2") != std::string::npos;
}

void add(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::vector<std::string> by_srun(const Options& options) {
  std::vector<std::string> words{"srun", "--mpi=pmi2", "--no-kill", "--kill-on-bad-exit=0",
                                 "--export=ALL"};
  add(words, {"--wait=0", "--overcommit", "--overlap", "--input=none"});
  add(words, {"-n", std::to_string(all_ranks(options))});
  if (options.ranks_per_host > 0)
    add(words, {"--ntasks-per-node", std::to_string(options.ranks_per_host)});
  return words;
}

std::vector<std::string> by_mpiexec(const Options& options) {
  std::vector<std::string> words{options.mpiexec, "-disable-auto-cleanup", "-n",
                                 std::to_string(all_ranks(options))};
  if (!options.hosts.empty()) add(words, {"-hosts", options.hosts});
  if (options.ranks_per_host > 0) add(words, {"-ppn", std::to_string(options.ranks_per_host)});
  add(words, options.mpiexec_options);
  return words;
}

}  // namespace

bool starts_by_srun(const Options& options) {
  static const bool has_pmi2 = in_slurm_job_of_several_nodes() && srun_has_pmi2();
  return has_pmi2 && options.hosts.empty() && options.mpiexec == Options().mpiexec &&
         options.mpiexec_options.empty();
}

std::vector<std::string> start_command(const Options& options) {
  std::vector<std::string> words = starts_by_srun(options) ? by_srun(options) : by_mpiexec(options);
  add(words, {own_path(), "--wrap"});
  add(words, options.program);
  return words;
}

}  // namespace fastrun
