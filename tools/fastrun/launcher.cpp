#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "channel.hpp"
#include "fastrun.hpp"

namespace fastrun {
namespace {

using fast::Deadline;
using fast::ErrorKind;
using fast::Seconds;

constexpr Seconds grace{5};  ///< from SIGTERM to SIGKILL
constexpr int poll_ms = 100;

struct Rank {
  enum class State { starting, running, ended };
  State state = State::starting;
  bool began = false;
  long pid = 0;
  int status = 0;
  std::string host;
  std::vector<std::string> said;
  bool succeeded() const {
    return state == State::ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

std::string describe(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

std::string own_path() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  fast::require(length > 0, ErrorKind::resource, "fastrun: /proc/self/exe cannot be read");
  return path;
}

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
}

std::vector<std::string> command(const Options& options) {
  std::vector<std::string> words{options.mpiexec, "-disable-auto-cleanup", "-n",
                                 std::to_string(options.ranks)};
  if (!options.hosts.empty()) words.insert(words.end(), {"-hosts", options.hosts});
  if (options.ranks_per_host > 0) {
    words.insert(words.end(), {"-ppn", std::to_string(options.ranks_per_host)});
  }
  words.insert(words.end(), options.mpiexec_options.begin(), options.mpiexec_options.end());
  words.insert(words.end(), {own_path(), "--wrap"});
  words.insert(words.end(), options.program.begin(), options.program.end());
  return words;
}

/// Of libraries that would take all cores in every rank.
void limit_threads(int threads) {
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    setenv(name, std::to_string(threads).c_str(), threads > 0 ? 1 : 0);
  }
}

/// The other end of a wrapper.
struct WrapperEnd {
  Lines lines;
  int rank = -1;
  bool trusted = false;
};

class Launcher {
 public:
  explicit Launcher(const Options& options)
      : options_(options),
        token_(random_token()),
        listener_(listen_anywhere()),
        ranks_(static_cast<std::size_t>(options.ranks)) {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR2})
      sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    signals_ = Descriptor(signalfd(-1, &watched, SFD_CLOEXEC));
  }

  int run() {
    const std::string at = fmt::format("{} {} {}", own_addresses(), listener_.port, token_);
    setenv(launcher_variable, at.c_str(), 1);
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int each = std::max(1, cores / ranks_on_a_host(options_));
    limit_threads(options_.threads > 0 ? options_.threads : each);
    start();
    while (!all_ended() && mpiexec_ > 0) {
      turn();
      check_start();
    }
    finish();
    return report();
  }

 private:
  void start() {
    const std::vector<std::string> words = command(options_);
    mpiexec_ = fork();
    if (mpiexec_ != 0) return;
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
    std::fprintf(stderr,
                 "fastrun: %s cannot be started (%s); install MPICH or name it by --mpiexec\n",
                 arguments[0], std::strerror(errno));
    _exit(127);
  }

  /// Waits for something to happen, and does what follows from it.
  void turn() {
    std::vector<pollfd> watched{{signals_.get(), POLLIN, 0},
                                {listener_.descriptor.get(), POLLIN, 0}};
    for (const WrapperEnd& wrapper : wrappers_) {
      watched.push_back({wrapper.lines.descriptor(), POLLIN, 0});
    }
    poll(watched.data(), watched.size(), poll_ms);
    for (std::size_t w = watched.size(); w-- > 2;) {  // backwards: hear() may erase
      if (watched[w].revents != 0) hear(w - 2);
    }
    if (watched[1].revents != 0) {
      const int connection =
          accept4(listener_.descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (connection >= 0) wrappers_.push_back({Lines(Descriptor(connection)), -1, false});
    }
    if (watched[0].revents != 0) hear_signal();
  }

  void hear(std::size_t index) {
    WrapperEnd& wrapper = wrappers_[index];
    const auto lines = wrapper.lines.receive();
    for (const std::string& line : lines.value_or(std::vector<std::string>{})) {
      if (!wrapper.trusted) {
        wrapper.trusted = line == "token " + token_;
        if (!wrapper.trusted) break;
      } else {
        take(wrapper, line);
      }
    }
    if (lines && wrapper.trusted) return;
    if (!lines && wrapper.rank >= 0 && rank(wrapper).state == Rank::State::running) {
      std::fprintf(stderr, "fastrun: rank %d on %s is out of reach\n", wrapper.rank,
                   rank(wrapper).host.c_str());
      end(wrapper.rank, SIGKILL);
    }
    wrappers_.erase(wrappers_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void take(WrapperEnd& wrapper, const std::string& line) {
    std::istringstream words(line);
    std::string kind;
    int number = -1;
    words >> kind >> number;
    if (number < 0 || number >= options_.ranks) return;
    Rank& one = ranks_[static_cast<std::size_t>(number)];
    if (kind == "hello") {
      wrapper.rank = number;
      words >> one.pid >> one.host;
      one.state = Rank::State::running;
    } else if (kind == "began") {
      one.began = true;
    } else if (kind == "said") {
      std::string text;
      std::getline(words >> std::ws, text);
      one.said.push_back(text);
    } else if (kind == "ended") {
      int status = 0;
      words >> status;
      end(number, status);
    }
  }

  Rank& rank(const WrapperEnd& wrapper) { return ranks_[static_cast<std::size_t>(wrapper.rank)]; }

  void end(int number, int status) {
    Rank& one = ranks_[static_cast<std::size_t>(number)];
    one.state = Rank::State::ended;
    one.status = status;
    for (const WrapperEnd& wrapper : wrappers_) {
      wrapper.lines.send(fmt::format("gone {} {}", number, one.succeeded() ? "left" : "died"));
    }
    if (one.succeeded()) return;
    if (!first_death_) first_death_.emplace(Seconds(options_.start_deadline_s));
    if (WIFSIGNALED(status)) tell(number);
  }

  void tell(int number) const {
    const Rank& one = ranks_[static_cast<std::size_t>(number)];
    std::fprintf(stderr, "fastrun: rank %d (process %ld on %s) %s\n", number, one.pid,
                 one.host.c_str(), describe(one.status).c_str());
    for (const std::string& line : one.said) {
      std::fprintf(stderr, "fastrun:   rank %d said: %s\n", number, line.c_str());
    }
  }

  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& one) { return one.state == Rank::State::ended; });
  }

  /// Ranks that have not met yet cannot do without the one that died.
  void check_start() {
    if (ending_ && ending_->expired()) {
      pass_on(SIGKILL);
      ending_.emplace(grace);
    }
    if (!ending_ && launching_.expired()) give_up_launching();
    if (!first_death_ || ending_ || !first_death_->expired()) return;
    const bool began =
        std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.began; });
    if (began) return;
    std::fprintf(
        stderr,
        "fastrun: a rank ended before training began, and %.0f s later the others have not "
        "begun; ending them\n",
        options_.start_deadline_s);
    pass_on(SIGTERM);
    ending_.emplace(grace);
  }

  /// What mpiexec says is all there is to tell why.
  void give_up_launching() {
    const auto missing = std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& one) {
      return one.state == Rank::State::starting;
    });
    if (missing == 0) return;
    std::fprintf(stderr,
                 "fastrun: %ld of %d ranks have not been started within %.0f s; ending the others; "
                 "look for what %s says, or try fastrun --doctor\n",
                 static_cast<long>(missing), options_.ranks, launching_.elapsed_s(),
                 options_.mpiexec.c_str());
    pass_on(SIGTERM);
    kill(-mpiexec_, SIGKILL);
    ending_.emplace(grace);
  }

  void hear_signal() {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(mpiexec_, &status, WNOHANG) == mpiexec_) mpiexec_ = -1;
      return;
    }
    const bool again = signal == SIGINT && std::exchange(interrupted_, true);
    pass_on(again ? SIGKILL : signal == SIGHUP ? SIGTERM : signal);
    if (wrappers_.empty() && signal != SIGUSR2) kill(-mpiexec_, SIGKILL);
  }

  void pass_on(int signal) const {
    for (const WrapperEnd& wrapper : wrappers_)
      wrapper.lines.send(fmt::format("signal {}", signal));
  }

  /// Lets the wrappers go, and mpiexec with them.
  void finish() {
    for (const WrapperEnd& wrapper : wrappers_) wrapper.lines.send("done");
    const Deadline deadline(grace);
    while (mpiexec_ > 0 && !deadline.expired()) turn();
    if (mpiexec_ <= 0) return;
    kill(mpiexec_, SIGKILL);
    waitpid(mpiexec_, nullptr, 0);
  }

  int report() {
    int succeeded = 0;
    for (int r = 0; r < options_.ranks; ++r) {
      const Rank& one = ranks_[static_cast<std::size_t>(r)];
      succeeded += one.succeeded() ? 1 : 0;
      if (one.state != Rank::State::ended) {
        std::fprintf(
            stderr, "fastrun: rank %d %s\n", r,
            one.state == Rank::State::starting ? "never started" : "was lost with mpiexec");
      }
    }
    const int wanted = std::min(options_.min_workers, options_.ranks);
    if (succeeded == options_.ranks) return 0;
    std::fprintf(stderr, "fastrun: %d of %d ranks ended well; %d %s required\n", succeeded,
                 options_.ranks, wanted, wanted == 1 ? "is" : "are");
    return succeeded >= wanted ? 0 : 1;
  }

  Options options_;
  Deadline launching_{Seconds(options_.launch_deadline_s)};
  std::string token_;
  Listener listener_;
  std::vector<Rank> ranks_;
  std::vector<WrapperEnd> wrappers_;
  Descriptor signals_;
  pid_t mpiexec_ = -1;
  std::optional<Deadline> first_death_, ending_;
  bool interrupted_ = false;
};

}  // namespace

int ranks_on_a_host(const Options& options) {
  if (options.ranks_per_host > 0) return options.ranks_per_host;
  const char* in_slurm = std::getenv("SLURM_NNODES");
  long hosts = 1;
  if (!options.hosts.empty()) {
    hosts += std::count(options.hosts.begin(), options.hosts.end(), ',');
  } else if (in_slurm != nullptr) {
    hosts = std::max(1, std::atoi(in_slurm));
  }
  return static_cast<int>((options.ranks + hosts - 1) / hosts);
}

int launch(const Options& options) {
  fast::require(std::getenv("PMI_RANK") == nullptr, ErrorKind::argument,
                "fastrun: a process manager has started this already (PMI_RANK is set); start "
                "fastrun once, within salloc or sbatch rather than by srun or mpiexec");
  return Launcher(options).run();
}

}  // namespace fastrun
