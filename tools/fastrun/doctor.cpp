#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <memory>
#include <optional>
#include <sstream>

#include "fastrun/channel.hpp"
#include "fastrun/fastrun.hpp"
#include "fastrun/host.hpp"
#include "fastrun/starter.hpp"
#include "mpi/host_abilities.hpp"
#include "mpi/implementation.hpp"

namespace fastrun {
namespace {

constexpr double mib = 1024.0 * 1024.0;

struct Outcome {
  int status = 0;
  std::string output;
};

Outcome run(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(("(" + command + ") 2>&1 </dev/null").c_str(), "r"), pclose);
  Outcome outcome{-1, {}};
  if (!pipe) return outcome;
  std::array<char, 512> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    outcome.output += buffer.data();
  }
  outcome.status = 0;
  return outcome;
}

std::string shell_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The begin of what a command has printed, in one line.
std::string answered(const std::string& output) {
  std::string text;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    while (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) text += (text.empty() ? "" : "; ") + line;
  }
  return text.empty() ? "it answers nothing" : "it answers: " + text.substr(0, 200);
}

class Doctor {
 public:
  void say(bool well, const std::string& what, const std::string& remedy) {
    std::printf("%-5s %s%s%s\n", well ? "ok" : "FIX", what.c_str(), well ? "" : ": ",
                well ? "" : remedy.c_str());
    all_well_ = all_well_ && well;
  }
  void note(const std::string& what) { std::printf("note  %s\n", what.c_str()); }
  bool all_well() const { return all_well_; }

 private:
  bool all_well_ = true;
};

/// How to get the mpiexec of this program's MPI, if `found` is that of another, or is null.
std::string remedy_for(const ProcessManager* found) {
  const ProcessManager& own = own_process_manager();
  const std::string choose = fmt::format(
      "name its mpiexec by --mpiexec {}, or choose it for all programs by "
      "update-alternatives --config mpirun",
      own.command);
  if (found == nullptr)
    return fmt::format("install {} (apt-get install {}), or {}", own.mpi, own.package, choose);
  return fmt::format("it is {}'s, but FAST is built with {}: each rank would be rank 0 of 1; {}",
                     found->mpi, own.mpi, choose);
}

void check_mpi(Doctor& doctor, const Options& options) {
  const ProcessManager& own = own_process_manager();
  const Outcome version = run("timeout 20 " + shell_word(options.mpiexec) + " --version");
  const ProcessManager* found = process_manager_that_says(version.output);
  doctor.say(found == &own, fmt::format("{} is {}", options.mpiexec, own.title), remedy_for(found));
  if (found != &own) return;
  std::string command = "timeout 20 " + shell_word(options.mpiexec);
  for (const std::string& word : own.always) command += " " + word;
  // Hydra may die of SIGPIPE, without a word, beside programs that end at once.
  command += " -n 2 sh -c 'echo started; sleep 0.2'";
  Outcome two = run(command);
  if (two.output.empty()) two = run(command);
  doctor.say(two.output == "started\nstarted\n", "two processes can be started here",
             answered(two.output));
}

/// What a host has for its ranks.
struct Host {
  std::string where;  ///< as in "4 ranks here"
  double free_mib = 0;
  int cores = 0;
};

Host this_host() {
  struct statvfs file_system {};
  const bool there = statvfs("/dev/shm", &file_system) == 0;
  const double free_mib = there ? static_cast<double>(file_system.f_bavail) *
                                      static_cast<double>(file_system.f_frsize) / mib
                                : 0;
  return {"here", free_mib, usable_cores()};
}

constexpr const char* silence = "no answer within 30 s";

/// Asks a host over ssh. None when it does not answer; `answer` is what ssh printed then, or
/// silence.
std::optional<Host> other_host(const std::string& name, std::string& answer) {
  answer = run("timeout 30 ssh -o BatchMode=yes -o ConnectTimeout=5 " + shell_word(name) +
               " 'echo reached $(nproc) $(df -Pk /dev/shm | tail -n 1)' || "
               "{ [ $? -ne 124 ] || echo '" +
               silence + "'; }")
               .output;
  const std::size_t begin = answer.find("reached ");
  if (begin == std::string::npos) return std::nullopt;
  std::istringstream words(answer.substr(begin));
  std::string ignored;
  double size_kib = 0, used_kib = 0, free_kib = 0;
  Host host{"on " + name};
  words >> ignored >> host.cores >> ignored >> size_kib >> used_kib >> free_kib;
  host.free_mib = free_kib / 1024;
  return host;
}

constexpr double least_for_slots_mib = 12;  ///< of a rank

void check_memory(Doctor& doctor, const Host& host, int ranks) {
  const double for_mpi =
      static_cast<double>(fast::mpi::implementation::shared_bytes_per_rank()) / mib;
  const double for_slots = host.free_mib / ranks - for_mpi;
  const std::string models = for_slots > 0 ? fmt::format("models of up to {:.{}f} MiB",
                                                         for_slots / 3, for_slots < 30 ? 1 : 0)
                                           : "MPI cannot start";
  doctor.say(for_slots >= least_for_slots_mib,
             fmt::format("/dev/shm has {:.0f} MiB free: {} with {} ranks {} (each needs {:.1f} MiB "
                         "for MPI and three slots)",
                         host.free_mib, models, ranks, host.where, for_mpi),
             "enlarge it (mount -o remount,size=... /dev/shm; docker run --shm-size=...)");
}

/// What FAST does about this concerns its own programs.
void check_processes(Doctor& doctor) {
  if (fast::mpi::implementation::name() != "MPICH" || fast::mpi::can_read_other_processes()) return;
  doctor.note(
      "processes here cannot read each other's memory (ptrace is forbidden): programs of FAST set "
      "UCX_RNDV_THRESH=1g; set it for other programs of MPI, which may hang without it");
}

void check_cores(Doctor& doctor, const Host& host, int ranks) {
  const std::string found = fmt::format("{} cores for {} ranks {}", host.cores, ranks, host.where);
  if (ranks <= host.cores) {
    doctor.say(true, found, "");
  } else {
    doctor.note(found + ": ranks share cores, so runs are slow; start fewer ranks on each host");
  }
}

void check_host(Doctor& doctor, const Host& host, int ranks) {
  check_memory(doctor, host, ranks);
  check_cores(doctor, host, ranks);
}

void check_other_host(Doctor& doctor, const std::string& name, int ranks) {
  std::string answer;
  const std::optional<Host> host = other_host(name, answer);
  const bool is_silent = answer.find(silence) != std::string::npos;
  doctor.say(host.has_value(), "host " + name + " answers to ssh",
             is_silent ? std::string(silence) + "; see whether it is up, and what its load is"
                       : "set up ssh without a password to it; " + answered(answer));
  if (host) check_host(doctor, *host, ranks);
}

/// Those of --hosts; without it this one.
void check_hosts(Doctor& doctor, const Options& options) {
  const int ranks = ranks_on_a_host(options);
  if (options.hosts.empty()) return check_host(doctor, this_host(), ranks);
  std::istringstream list(options.hosts);
  for (std::string name; std::getline(list, name, ',');) {
    name = name.substr(0, name.find(':'));
    if (is_this_host(name)) {
      check_host(doctor, this_host(), ranks);
    } else {
      check_other_host(doctor, name, ranks);
    }
  }
}

#ifdef FAST_LEAST_DRIVER
constexpr int least_driver = FAST_LEAST_DRIVER;
#else
constexpr int least_driver = 0;  ///< built without CUDA
#endif

void check_gpu(Doctor& doctor) {
  const std::string driver = nvidia_driver();
  if (driver.empty()) return doctor.note("no NVIDIA driver is here: training runs on the cores");
  if (least_driver == 0) {
    return doctor.note(
        "a GPU is here, but FAST was built without CUDA: weights on it go through the host");
  }
  doctor.say(std::atoi(driver.c_str()) >= least_driver, "the driver of the GPUs here is " + driver,
             fmt::format("this FAST needs {} or later; update the driver, or build with an older "
                         "CUDA toolkit",
                         least_driver));
}

void check_slurm(Doctor& doctor) {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr) return;
  doctor.note(fmt::format("within Slurm job {}: ranks are started on its hosts by srun", job));
}

}  // namespace

int examine(const Options& options) {
  Doctor doctor;
  check_mpi(doctor, options);
  check_hosts(doctor, options);
  check_processes(doctor);
  check_gpu(doctor);
  check_slurm(doctor);
  return doctor.all_well() ? 0 : 1;
}

}  // namespace fastrun
