#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fast/core/error.hpp>
#include <sstream>
#include <utility>

#include "channel.hpp"
#include "fastrun.hpp"

namespace fastrun {
namespace {

constexpr std::size_t last_lines = 6;
constexpr int launcher_gone = 1;

/// Passes on what it reads, and remembers its end.
class Tail {
 public:
  explicit Tail(Descriptor from) : from_(std::move(from)) {}
  int descriptor() const { return from_.get(); }
  bool open() const { return from_.get() >= 0; }

  void pass_on() {
    char buffer[4096];
    const ssize_t count = read(from_.get(), buffer, sizeof buffer);
    if (count <= 0) {
      from_ = Descriptor();
      return;
    }
    for (ssize_t done = 0; done < count;) {
      const ssize_t written =
          write(STDERR_FILENO, buffer + done, static_cast<std::size_t>(count - done));
      if (written <= 0) break;
      done += written;
    }
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(count))) {
      if (c != '\n' && c != '\r') {
        line_ += c;
      } else if (!line_.empty()) {
        lines_.push_back(std::exchange(line_, {}));
        if (lines_.size() > last_lines) lines_.pop_front();
      }
    }
  }

  const std::deque<std::string>& lines() const { return lines_; }

 private:
  Descriptor from_;
  std::string line_;
  std::deque<std::string> lines_;
};

/// A pipe's ends; the reading one is this process's alone.
std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  fast::require(pipe(ends) == 0, fast::ErrorKind::resource, "fastrun: no pipe ({})",
                std::strerror(errno));
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

[[noreturn]] void become(const std::vector<std::string>& program, int errors, int progress,
                         int news) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGUSR1, SIG_IGN);  // what the process manager sends to survivors
  setenv("FASTRUN_FD", std::to_string(progress).c_str(), 1);
  setenv("FASTRUN_NEWS_FD", std::to_string(news).c_str(), 1);
  unsetenv(launcher_variable);
  dup2(errors, STDERR_FILENO);
  close(errors);
  std::vector<char*> arguments;
  for (const std::string& argument : program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const std::string complaint =
      fmt::format("fastrun: {} cannot be started ({})\n", program[0], std::strerror(errno));
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, complaint.data(), complaint.size());
  _exit(127);
}

class Wrapper {
 public:
  Wrapper(Lines launcher, std::string rank, const std::vector<std::string>& program)
      : launcher_(std::move(launcher)), rank_(std::move(rank)), errors_(Descriptor()) {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR2}) sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    std::signal(SIGUSR1, SIG_IGN);
    signals_ = Descriptor(signalfd(-1, &watched, SFD_CLOEXEC));
    auto [errors_in, errors_out] = make_pipe();
    auto [progress_in, progress_out] = make_pipe();
    news_ = Descriptor(memfd_create("fastrun", 0));
    child_ = fork();
    if (child_ == 0) become(program, errors_out.get(), progress_out.get(), news_.get());
    errors_ = Tail(std::move(errors_in));
    progress_ = std::move(progress_in);
  }

  int run() {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    launcher_.send(fmt::format("hello {} {} {}", rank_, child_, host));
    while (!done_) {
      pollfd watched[] = {{signals_.get(), POLLIN, 0},
                          {launcher_.descriptor(), POLLIN, 0},
                          {errors_.descriptor(), POLLIN, 0},
                          {progress_.get(), POLLIN, 0}};
      poll(watched, 4, -1);
      if (watched[2].revents != 0) errors_.pass_on();
      if (watched[3].revents != 0) hear_progress();
      if (watched[0].revents != 0) hear_signal();
      if (watched[1].revents != 0 && !hear_launcher()) return launcher_gone;
    }
    return 0;
  }

 private:
  void hear_progress() {
    char byte = 0;
    if (read(progress_.get(), &byte, 1) != 1) {
      progress_ = Descriptor();
    } else if (!began_) {
      began_ = true;
      launcher_.send("began " + rank_);
    }
  }

  void hear_signal() {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGCHLD) {
      if (child_ > 0) kill(child_, signal);
      return;
    }
    int status = 0;
    if (child_ <= 0 || waitpid(child_, &status, WNOHANG) != child_) return;
    child_ = -1;
    while (errors_.open() && has_more()) errors_.pass_on();
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well) {
      for (const std::string& line : errors_.lines()) launcher_.send("said " + rank_ + " " + line);
    }
    launcher_.send(fmt::format("ended {} {}", rank_, status));
  }

  bool has_more() const {
    pollfd errors{errors_.descriptor(), POLLIN, 0};
    return poll(&errors, 1, 0) == 1;
  }

  /// False when the launcher has gone: then so shall the rank.
  bool hear_launcher() {
    const auto lines = launcher_.receive();
    if (!lines) {
      if (child_ > 0) kill(child_, SIGKILL);
      return false;
    }
    for (const std::string& line : *lines) {
      std::istringstream words(line);
      std::string word;
      int number = 0;
      words >> word >> number;
      if (word == "done") done_ = true;
      if (word == "gone") {
        std::string how;
        words >> how;
        const std::string news = fmt::format("{} {}\n", number, how);
        [[maybe_unused]] const ssize_t ignored = write(news_.get(), news.data(), news.size());
      }
      if (word == "signal" && child_ > 0) kill(child_, number);
    }
    return true;
  }

  Lines launcher_;
  std::string rank_;
  Tail errors_;
  Descriptor signals_, progress_;
  Descriptor news_;  ///< ranks that have ended, for the program to read
  pid_t child_ = -1;
  bool began_ = false, done_ = false;
};

}  // namespace

int wrap(const std::vector<std::string>& program) {
  const char* at = std::getenv(launcher_variable);
  const char* rank = std::getenv("PMI_RANK");
  fast::require(at != nullptr && rank != nullptr && !program.empty(), fast::ErrorKind::argument,
                "fastrun --wrap is started by fastrun only");
  std::istringstream words(at);
  std::string addresses, token;
  int port = 0;
  words >> addresses >> port >> token;
  Descriptor connection = connect_to(addresses, port);
  fast::require(connection.get() >= 0, fast::ErrorKind::resource,
                "fastrun: rank {} cannot reach its launcher at {}, port {}; open that port between "
                "the hosts",
                rank, addresses, port);
  Lines launcher(std::move(connection));
  launcher.send("token " + token);
  return Wrapper(std::move(launcher), rank, program).run();
}

}  // namespace fastrun
