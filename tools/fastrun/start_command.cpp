#include "start_command.hpp"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fast/core/error.hpp>

#include "process_manager.hpp"

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

/// Of heterogeneous jobs, `fastrun` would use the nodes of one component.
void require_one_component() {
  const char* components = std::getenv("SLURM_HET_SIZE");
  fast::require(components == nullptr || std::atoi(components) < 2, fast::ErrorKind::argument,
                "fastrun: this Slurm job has {} components, and fastrun starts ranks on one only; "
                "start the program with srun --het-group, or give --hosts",
                components == nullptr ? "" : components);
}

/// Slurm's way to connect the ranks of this MPI.
bool srun_has(const char* plugin) {
  FILE* list = popen("srun --mpi=list 2>&1", "r");
  if (list == nullptr) return false;
  std::string text;
  std::array<char, 512> buffer;
  while (std::fgets(buffer.data(), buffer.size(), list) != nullptr) text += buffer.data();
  return pclose(list) == 0 && text.find(plugin) != std::string::npos;
}

void add_words(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

}  // namespace

std::vector<std::string> by_srun(const Options& options) {
  std::vector<std::string> words{"srun", fmt::format("--mpi={}", own_process_manager().srun_plugin),
                                 "--no-kill", "--kill-on-bad-exit=0", "--export=ALL"};
  add_words(words, {"--wait=0", "--overcommit", "--overlap", "--input=none"});
  add_words(words, {"-n", std::to_string(all_ranks(options))});
  if (options.ranks_per_host > 0)
    add_words(words, {"--ntasks-per-node", std::to_string(options.ranks_per_host)});
  // Since Slurm 22.05, srun does not take it from sbatch's options.
  if (const int cores = cores_of_a_slurm_task(options); cores > 0)
    words.push_back(fmt::format("--cpus-per-task={}", cores));
  return words;
}

namespace {

std::vector<std::string> by_mpiexec(const Options& options) {
  std::vector<std::string> words{options.mpiexec};
  add_words(words, own_process_manager().words(options));
  add_words(words, options.mpiexec_options);
  return words;
}

}  // namespace

bool starts_by_srun(const Options& options) {
  static const bool has_plugin =
      in_slurm_job_of_several_nodes() && srun_has(own_process_manager().srun_plugin);
  return has_plugin && options.hosts.empty() && options.mpiexec == Options().mpiexec &&
         options.mpiexec_options.empty();
}

std::vector<std::string> start_command(const Options& options) {
  if (options.hosts.empty()) require_one_component();
  std::vector<std::string> words = starts_by_srun(options) ? by_srun(options) : by_mpiexec(options);
  add_words(words, {own_path(), "--wrap"});
  add_words(words, options.program);
  return words;
}

}  // namespace fastrun
