#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "fastrun/channel.hpp"
#include "fastrun/fastrun.hpp"
#include "fastrun/output.hpp"
#include "fastrun/watch.hpp"
#include "mpi/host_abilities.hpp"
#include "mpi/launcher.hpp"
#include "mpi/process_manager.hpp"

namespace fastrun {
namespace {

using fast::mpi::LauncherNote;

constexpr int launcher_gone = 1;
constexpr int look_every_ms = 500;
constexpr int start_ms = 10'000;         ///< in which a file system finds the program, or does not
constexpr std::size_t most_words = 300;  ///< bytes
constexpr fast::Seconds longest_death{2};
constexpr std::chrono::milliseconds a_moment{20};

/// Runs `work` in a child process with a session of its own and returns its exit status. The
/// process manager knows this process only: its signals do not reach the child, and the child goes
/// on when this process is killed.
int in_own_session(const std::function<int()>& work) {
  const pid_t child = fork();
  fast::require(child >= 0, fast::ErrorKind::resource, "fastrun: no process ({})",
                std::strerror(errno));
  if (child == 0) {
    setsid();
    return work();
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_IGN);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// A pipe's ends; the reading one is this process's alone.
std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  const bool made = pipe(ends) == 0;
  fast::require(made, fast::ErrorKind::resource, "fastrun: no pipe ({})", std::strerror(errno));
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// `failure` takes the error number if the program cannot be started. It closes if it can.
[[noreturn]] void become(const std::vector<std::string>& program, int output, int errors,
                         int progress, int news, int failure) {
  setpgid(0, 0);  // with what it starts: a script's programs are the rank, too
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGUSR1, SIG_IGN);  // what the process manager sends to survivors
  setenv("FASTRUN_FD", std::to_string(progress).c_str(), 1);
  setenv("FASTRUN_NEWS_FD", std::to_string(news).c_str(), 1);
  unsetenv(launcher_variable);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  close(output);
  close(errors);
  std::vector<char*> arguments;
  for (const std::string& argument : program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  std::signal(SIGPIPE, SIG_IGN);
  if (write(failure, &why, sizeof why) != sizeof why) {  // it came too late for start_ms
    const std::string complaint =
        fmt::format("fastrun: {} cannot be started ({})\n", program[0], std::strerror(why));
    [[maybe_unused]] const ssize_t ignored =
        write(STDERR_FILENO, complaint.data(), complaint.size());
  }
  _exit(127);
}

/// Why the program could not be started, from the other end of become()'s pipe; empty: it was.
std::string why_not_started(const Descriptor& failure) {
  pollfd one{failure.get(), POLLIN, 0};
  int why = 0;
  const bool failed =
      poll(&one, 1, start_ms) == 1 && read(failure.get(), &why, sizeof why) == sizeof why;
  return failed ? std::strerror(why) : std::string();
}

class Wrapper {
 public:
  Wrapper(Lines launcher, Descriptor output, std::string rank,
          const std::vector<std::string>& program)
      : launcher_(std::move(launcher)), rank_(std::move(rank)) {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR2}) sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    std::signal(SIGUSR1, SIG_IGN);
    signals_ = Descriptor(signalfd(-1, &watched, SFD_CLOEXEC));
    auto [output_in, output_out] = make_pipe();
    auto [errors_in, errors_out] = make_pipe();
    auto [progress_in, progress_out] = make_pipe();
    auto [failure_in, failure_out] = make_pipe();
    fcntl(failure_out.get(), F_SETFD, FD_CLOEXEC);
    news_ = Descriptor(memfd_create("fastrun", 0));
    child_ = group_ = fork();
    if (child_ == 0)
      become(program, output_out.get(), errors_out.get(), progress_out.get(), news_.get(),
             failure_out.get());
    setpgid(child_, child_);  // as the child does: whoever comes first
    output_.emplace(std::move(output), std::move(output_in), std::move(errors_in));
    progress_ = std::move(progress_in);
    failure_out = Descriptor();
    not_started_ = why_not_started(failure_in);
    leave_streams();
  }

  int run() {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    launcher_.send(fmt::format("hello {} {} {} {}", rank_, child_, host, not_started_));
    while (!done_ || !output_->is_flushed()) {
      const auto [output, errors, connection] = output_->watched();
      pollfd watched[] = {{signals_.get(), POLLIN, 0},
                          {launcher_.descriptor(), POLLIN, 0},
                          {progress_.get(), POLLIN, 0},
                          output,
                          errors,
                          connection};
      poll(watched, std::size(watched), watched_by_people_ ? look_every_ms : -1);
      output_->advance();
      if (watched_by_people_) look_at_rank();
      if (watched[2].revents != 0) hear_progress();
      if (watched[0].revents != 0) hear_signal();
      if (watched[1].revents != 0 && !hear_launcher()) {
        clean_up();
        return launcher_gone;
      }
    }
    clean_up();
    return 0;
  }

 private:
  /// The process manager's pipes: it waits for their end, and writing to them may kill.
  static void leave_streams() {
    const Descriptor nothing(open("/dev/null", O_RDWR));
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      dup2(nothing.get(), stream);
  }

  void signal_rank(int signal) const {
    if (group_ > 0) kill(-group_, signal);
  }

  /// Reads on demand, so that nothing is written while nothing happens.
  void report_rank(const std::string& news) const {
    [[maybe_unused]] const ssize_t ignored = write(news_.get(), news.data(), news.size());
  }

  void hear_progress() {
    char bytes[4096];
    const ssize_t count = read(progress_.get(), bytes, sizeof bytes);
    if (count <= 0) {
      progress_ = Descriptor();
      return;
    }
    const auto [notes, statuses] = reports_.take({bytes, static_cast<std::size_t>(count)});
    for (const LauncherNote note : notes) pass_on(note);
    if (!statuses.empty()) show("status", statuses.back());
  }

  void pass_on(LauncherNote note) {
    if (note == LauncherNote::took_seat) launcher_.send("trains " + rank_);
    if (note == LauncherNote::stays) launcher_.send("stays " + rank_);
    if (note == LauncherNote::joined) launcher_.send("joins " + rank_);
    if (note == LauncherNote::grows) launcher_.send("grows " + rank_);
    if (note == LauncherNote::refuses_growth) launcher_.send("refuses " + rank_);
    if (note == LauncherNote::lost_seat) launcher_.send("idles " + rank_);
    if (note == LauncherNote::training_began && !std::exchange(began_, true))
      launcher_.send("began " + rank_);
  }

  /// For people: left out while the launcher reads slowly.
  void show(const std::string& kind, const std::string& text) {
    pollfd one{launcher_.descriptor(), POLLOUT, 0};
    if (poll(&one, 1, 0) == 1) launcher_.send(fmt::format("{} {} {}", kind, rank_, text));
  }

  void look_at_rank() {
    const auto now = fast::Clock::now();
    if (now - looked_ < std::chrono::milliseconds(look_every_ms)) return;
    looked_ = now;
    const bool stopped = child_ > 0 && is_stopped(child_);
    if (std::exchange(stopped_, stopped) != stopped) show(stopped ? "stopped" : "goes", "");
    const auto& lines = output_->last_lines().get();
    const std::string words = lines.empty() ? "" : lines.back().substr(0, most_words);
    if (!words.empty() && words != words_) show("words", words_ = words);
  }

  void hear_signal() {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGCHLD) {
      signal_rank(signal);
      return;
    }
    int status = 0;
    if (child_ <= 0 || waitpid(child_, &status, WNOHANG) != child_) return;
    child_ = -1;
    output_->take_rest();
    ended_well_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended_well_) {
      for (const std::string& line : output_->last_lines().get())
        launcher_.send("said " + rank_ + " " + line);
    }
    launcher_.send(fmt::format("ended {} {}", rank_, status));
  }

  /// False when the launcher has gone: then so shall the rank.
  bool hear_launcher() {
    const auto lines = launcher_.receive();
    if (!lines) {
      signal_rank(SIGKILL);
      return false;
    }
    for (const std::string& line : *lines) {
      std::istringstream words(line);
      std::string word;
      int number = 0;
      words >> word >> number;
      if (word == "done") leave();
      if (word == "gone") {
        std::string how;
        words >> how;
        report_rank(fmt::format("{} {}\n", number, how));
      }
      if (word == "leave") report_rank(fmt::format("{} asked\n", number));
      if (word == "grow") report_rank(fmt::format("{} grow\n", number));
      if (word == "signal") signal_rank(number);
    }
    return true;
  }

  /// A rank that still runs is given up, with what it has started.
  void leave() {
    done_ = true;
    if (child_ > 0) signal_rank(SIGKILL);
  }

  /// MPI may have left files. Twice: another wrapper may look at the same file at the same time.
  void clean_up() {
    if (ended_well_) return;
    const fast::Deadline deadline(longest_death);
    while (child_ > 0 && waitpid(child_, nullptr, WNOHANG) == 0 && !deadline.expired())
      std::this_thread::sleep_for(a_moment);
    fast::mpi::remove_stale_shared_memory();
    std::this_thread::sleep_for(a_moment);
    fast::mpi::remove_stale_shared_memory();
  }

  Lines launcher_;
  std::string rank_;
  std::optional<OutputSender> output_;
  Descriptor signals_, progress_;
  Descriptor news_;  ///< ranks that have ended, for the program to read
  pid_t child_ = -1, group_ = -1;
  bool began_ = false, done_ = false, ended_well_ = false;
  std::string not_started_;  ///< why; empty: the program runs
  RankReports reports_;
  // For fastrun --watch:
  bool watched_by_people_ = std::getenv(watch_variable) != nullptr;
  bool stopped_ = false;
  std::string words_;  ///< the last line of the rank's standard error
  fast::Clock::time_point looked_{};
};

/// Where the launcher is, as it says by launcher_variable.
struct LauncherAddress {
  std::string addresses, token;
  int port = 0;
  double lost_after_s = 0;
};

LauncherAddress launcher_address() {
  const char* at = std::getenv(launcher_variable);
  fast::require(at != nullptr, fast::ErrorKind::argument,
                "fastrun --wrap is started by fastrun only");
  LauncherAddress address;
  std::istringstream(at) >> address.addresses >> address.port >> address.token >>
      address.lost_after_s;
  return address;
}

Descriptor connect_to_launcher(const LauncherAddress& address, const std::string& rank) {
  Descriptor connection = connect_to(address.addresses, address.port);
  fast::require(connection.get() >= 0, fast::ErrorKind::resource,
                "fastrun: rank {} cannot reach its launcher at {}, port {}; open that port between "
                "the hosts",
                rank, address.addresses, address.port);
  return connection;
}

int run_rank(const std::string& rank, const std::vector<std::string>& program) {
  const LauncherAddress address = launcher_address();
  Lines launcher(connect_to_launcher(address, rank));
  fail_when_lost(launcher.descriptor(), fast::Seconds(address.lost_after_s));
  launcher.send("token " + address.token);
  Lines output(connect_to_launcher(address, rank));
  output.send("token " + address.token);
  output.send(std::string(output_follows) + rank);
  return Wrapper(std::move(launcher), output.release().first, rank, program).run();
}

}  // namespace

int wrap(const std::vector<std::string>& program) {
  const auto self = fast::mpi::started();
  fast::require(self && !program.empty(), fast::ErrorKind::argument,
                "fastrun --wrap is started by fastrun only");
  const std::string rank = std::to_string(self->rank);
  setenv(rank_variable, rank.c_str(), 1);
  return in_own_session([&] { return run_rank(rank, program); });
}

}  // namespace fastrun
