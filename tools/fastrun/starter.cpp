#include "fastrun/starter.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fast/core/error.hpp>
#include <iterator>

#include "fastrun/channel.hpp"
#include "fastrun/watch.hpp"
#include "mpi/implementation.hpp"

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
         std::ranges::none_of(of_other_hosts,
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

extern char** environ;  // NOLINT: POSIX

namespace fastrun {
namespace {

using Words = std::vector<std::string>;

void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

Words words_of_hydra(const Options& options) {
  Words words{"-disable-auto-cleanup", "-n", std::to_string(all_ranks(options))};
  if (!options.hosts.empty()) add(words, {"-hosts", options.hosts});
  if (options.ranks_per_host > 0) add(words, {"-ppn", std::to_string(options.ranks_per_host)});
  return words;
}

/// Open MPI counts cores as slots, and binds ranks to cores: fastrun does neither.
const Words of_open_mpi{"--oversubscribe", "--bind-to", "none"};

/// "a,b:2" with 4 ranks on each host: "a:4,b:4".
std::string slots(const std::string& hosts, int ranks_per_host) {
  if (ranks_per_host == 0) return hosts;
  std::string all;
  std::size_t begin = 0;
  while (begin <= hosts.size()) {
    const std::size_t end = std::min(hosts.find(',', begin), hosts.size());
    const std::string host = hosts.substr(begin, end - begin);
    all += fmt::format("{}{}:{}", all.empty() ? "" : ",", host.substr(0, host.find(':')),
                       ranks_per_host);
    begin = end + 1;
  }
  return all;
}

/// hydra passes all variables on to other hosts; Open MPI those that it is told of.
Words exported_variables() {
  constexpr const char* prefixes[] = {
      "FAST", "OMP_", "OPENBLAS_", "MKL_", "UCX_", "LD_LIBRARY_PATH", "PATH=", "PYTHONPATH="};
  Words words;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool is_wanted = std::ranges::any_of(prefixes, [&](const char* prefix) {
      return std::strncmp(*variable, prefix, std::strlen(prefix)) == 0;
    });
    const std::string_view text(*variable);
    if (is_wanted) add(words, {"-x", std::string(text.substr(0, text.find('=')))});
  }
  return words;
}

Words words_of_open_mpi(const Options& options) {
  Words words{"--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0"};
  add(words, of_open_mpi);
  add(words, {"-n", std::to_string(all_ranks(options))});
  if (!options.hosts.empty()) {
    add(words, {"--host", slots(options.hosts, options.ranks_per_host)});
    if (options.ranks_per_host == 0) add(words, {"--map-by", "node"});
  }
  if (options.ranks_per_host > 0)
    add(words, {"--map-by", fmt::format("ppr:{}:node", options.ranks_per_host)});
  if (!options.hosts.empty()) add(words, exported_variables());
  return words;
}

const ProcessManager known[] = {
    {"MPICH", "MPICH's hydra", "HYDRA", "mpich", "mpiexec.mpich", "pmi2", {}, words_of_hydra},
    {"Open MPI", "Open MPI's", "Open MPI", "openmpi-bin", "mpiexec.openmpi", "pmix", of_open_mpi,
     words_of_open_mpi},
};

template <class Condition>
const ProcessManager* find(const Condition& condition) {
  const auto* found = std::ranges::find_if(known, condition);
  return found == std::end(known) ? nullptr : found;
}

}  // namespace

const ProcessManager& own_process_manager() {
  return *find(
      [](const ProcessManager& one) { return one.mpi == fast::mpi::implementation::name(); });
}

const ProcessManager* process_manager_that_says(std::string_view version) {
  const auto says = [&](const char* text) { return version.find(text) != std::string_view::npos; };
  return find([&](const ProcessManager& one) {
    return says(one.announces) || (one.mpi == std::string_view("Open MPI") && says("OpenRTE"));
  });
}

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

namespace {

[[noreturn]] void become(const std::vector<std::string>& words,
                         const DescriptorLimit& descriptors) {
  descriptors.restore();
  std::signal(SIGPIPE, SIG_DFL);
  setpgid(0, 0);  // a terminal's ^C comes to fastrun, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "fastrun: %s cannot be started (%s); install %s or name it by --mpiexec\n",
               arguments[0], std::strerror(errno), own_process_manager().mpi);
  _exit(127);
}

}  // namespace

void Starter::start(const Options& options, const DescriptorLimit& descriptors) {
  const std::vector<std::string> words = start_command(options);
  name_ = words.front();
  process_ = fork();
  if (process_ == 0) become(words, descriptors);
  setpgid(process_, process_);  // as the child does: whoever comes first
}

bool Starter::has_ended() {
  int status = 0;
  if (process_ <= 0 || waitpid(process_, &status, WNOHANG) != process_) return false;
  process_ = -1;
  return true;
}

void Starter::kill() const {
  if (runs()) ::kill(-process_, SIGKILL);
}

void Starter::end() {
  if (!runs()) return;
  kill();
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

}  // namespace fastrun
