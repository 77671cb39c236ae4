#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fast/core/error.hpp>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "fastrun.hpp"

namespace fastrun {
namespace {

constexpr double mib = 1024.0 * 1024.0;

struct Outcome {
  int status = 0;
  std::string output;
};

Outcome run(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen((command + " 2>&1 </dev/null").c_str(), "r"), pclose);
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

class Doctor {
 public:
  void say(bool well, const std::string& what, const std::string& remedy) {
    std::printf("%-5s %s%s%s\n", well ? "ok" : "MEND", what.c_str(), well ? "" : ": ",
                well ? "" : remedy.c_str());
    all_well_ = all_well_ && well;
  }
  bool all_well() const { return all_well_; }

 private:
  bool all_well_ = true;
};

void check_mpi(Doctor& doctor, const Options& options) {
  const Outcome version = run("timeout 20 " + shell_word(options.mpiexec) + " --version");
  const bool hydra = version.output.find("HYDRA") != std::string::npos;
  doctor.say(hydra, fmt::format("{} is MPICH's hydra", options.mpiexec),
             "install MPICH (apt-get install mpich), or name its mpiexec by --mpiexec");
  if (!hydra) return;
  const Outcome two = run("timeout 20 " + shell_word(options.mpiexec) + " -n 2 echo started");
  doctor.say(two.output == "started\nstarted\n", "two processes can be started here",
             "it answers: " + two.output.substr(0, 200));
}

void check_memory(Doctor& doctor, int ranks_here) {
  struct statvfs file_system {};
  const bool there = statvfs("/dev/shm", &file_system) == 0;
  const double free_mib = there ? static_cast<double>(file_system.f_bavail) *
                                      static_cast<double>(file_system.f_frsize) / mib
                                : 0;
  const double per_rank = free_mib / ranks_here;
  doctor.say(
      per_rank >= 16,
      fmt::format("/dev/shm has {:.0f} MiB free: models of up to {:.0f} MiB with {} ranks here "
                  "(three slots each)",
                  free_mib, per_rank / 3, ranks_here),
      "enlarge it (mount -o remount,size=... /dev/shm; docker run --shm-size=...)");
}

void check_cores(Doctor& doctor, int ranks_here) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  doctor.say(ranks_here <= cores, fmt::format("{} cores for {} ranks here", cores, ranks_here),
             "runs will work, slowly: ranks share cores; start fewer a host");
}

void check_hosts(Doctor& doctor, const Options& options) {
  std::istringstream list(options.hosts);
  for (std::string host; std::getline(list, host, ',');) {
    host = host.substr(0, host.find(':'));
    const Outcome answer =
        run("timeout 15 ssh -o BatchMode=yes -o ConnectTimeout=5 " + shell_word(host) +
            " 'echo reached; " + "command -v fastrun || true'");
    doctor.say(answer.output.find("reached") != std::string::npos,
               "host " + host + " answers to ssh",
               "set up ssh without a password to it; it answers: " + answer.output.substr(0, 200));
  }
}

void check_gpu() {
  std::error_code ignored;
  const bool driver = std::filesystem::exists("/dev/nvidia0", ignored);
  std::printf("note  %s\n",
              driver ? "a GPU is here" : "no GPU is here: training runs on the cores");
}

void check_slurm() {
  if (std::getenv("SLURM_JOB_ID") == nullptr) return;
  std::printf("note  within Slurm job %s: mpiexec starts ranks on its hosts by srun by itself\n",
              std::getenv("SLURM_JOB_ID"));
}

}  // namespace

int examine(const Options& options) {
  Doctor doctor;
  const int here = ranks_here(options);
  check_mpi(doctor, options);
  check_memory(doctor, here);
  check_cores(doctor, here);
  check_hosts(doctor, options);
  check_gpu();
  check_slurm();
  return doctor.all_well() ? 0 : 1;
}

}  // namespace fastrun
