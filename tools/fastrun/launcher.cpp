#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string_view>
#include <utility>

#include "channel.hpp"
#include "control_file.hpp"
#include "environment.hpp"
#include "fastrun.hpp"
#include "growth_requests.hpp"
#include "keep_alive.hpp"
#include "output.hpp"
#include "start_command.hpp"
#include "watch.hpp"

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
  bool trains = true;   ///< a spare only while it has a seat
  bool leaves = false;  ///< it was asked to
  bool lost = false;    ///< out of reach
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

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
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
        ranks_(static_cast<std::size_t>(all_ranks(options))) {
    std::for_each(ranks_.begin() + options.ranks, ranks_.end(),
                  [](Rank& spare) { spare.trains = false; });
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR2})
      sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    signals_ = Descriptor(signalfd(-1, &watched, SFD_CLOEXEC));
    std::signal(SIGPIPE, SIG_IGN);  // who reads the output may leave; the ranks go on
    if (options.watch) watch_ = std::make_unique<Watch>(ranks_.size());
    if (!options.control.empty()) control_.emplace(options.control);
  }

  int run() {
    set_environment(options_, {listener_.port, token_});
    start();
    while (!all_ended() && (mpiexec_ > 0 || trained_ranks_go_on())) {
      turn();
      check_start();
      hear_control();
      look_at_clock();
    }
    finish();
    return report();
  }

 private:
  void start() {
    const std::vector<std::string> words = start_command(options_);
    starter_ = words.front();
    mpiexec_ = fork();
    if (mpiexec_ != 0) return;
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
    std::fprintf(stderr,
                 "fastrun: %s cannot be started (%s); install MPICH or name it by --mpiexec\n",
                 arguments[0], std::strerror(errno));
    _exit(127);
  }

  template <class... Values>
  void say(fmt::format_string<Values...> format, Values&&... values) const {
    if (watch_) watch_->erase();
    fmt::print(stderr, "fastrun: {}\n", fmt::format(format, std::forward<Values>(values)...));
  }

  /// Waits for something to happen, and does what follows from it.
  void turn() {
    std::vector<pollfd> watched{{signals_.get(), POLLIN, 0},
                                {listener_.descriptor.get(), POLLIN, 0}};
    for (const WrapperEnd& wrapper : wrappers_) {
      watched.push_back({wrapper.lines.descriptor(), POLLIN, 0});
    }
    outputs_.watch(watched);
    poll(watched.data(), watched.size(), poll_ms);
    outputs_.advance();
    for (std::size_t w = wrappers_.size(); w-- > 0;) {  // backwards: hear() may erase
      if (watched[w + 2].revents != 0) hear(w);
    }
    if (watched[1].revents != 0) {
      const int connection =
          accept4(listener_.descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (connection >= 0) {
        fail_when_lost(connection, Seconds(options_.lost_after_s));
        wrappers_.push_back({Lines(Descriptor(connection)), -1, false});
      }
    }
    if (watched[0].revents != 0) hear_signal();
    if (watch_ && !finishing_) watch_->draw();
  }

  void hear(std::size_t index) {
    WrapperEnd& wrapper = wrappers_[index];
    const auto received = wrapper.lines.receive();
    const std::vector<std::string> lines = received.value_or(std::vector<std::string>{});
    for (auto line = lines.begin(); line != lines.end(); ++line) {
      if (!wrapper.trusted) {
        wrapper.trusted = *line == "token " + token_;
        if (!wrapper.trusted) break;
      } else if (*line == output_follows) {
        return take_output(index, {line + 1, lines.end()});
      } else {
        take(wrapper, *line);
      }
    }
    if (received && wrapper.trusted) return;
    if (!received && !finishing_ && wrapper.rank >= 0 &&
        rank(wrapper).state == Rank::State::running) {
      say("rank {} on {} is out of reach", wrapper.rank, rank(wrapper).host);
      lose(wrapper.rank);
    }
    wrappers_.erase(wrappers_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  /// From now on the connection carries what a rank prints, and has begun to.
  void take_output(std::size_t index, const std::vector<std::string>& lines) {
    std::string begun;
    for (const std::string& line : lines) (begun += line) += '\n';
    auto [connection, rest] = wrappers_[index].lines.release();
    outputs_.add(std::move(connection), begun + rest);
    wrappers_.erase(wrappers_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void take(WrapperEnd& wrapper, const std::string& line) {
    std::istringstream words(line);
    std::string kind;
    int number = -1;
    words >> kind >> number;
    if (number < 0 || number >= all_ranks(options_)) return;
    Rank& one = ranks_[static_cast<std::size_t>(number)];
    if (kind == "hello") {
      wrapper.rank = number;
      words >> one.pid >> one.host;
      one.state = Rank::State::running;
      if (watch_) watch_->joined(number, one.host);
    } else if (kind == "began") {
      one.began = true;
    } else if (kind == "trains" || kind == "idles") {
      one.trains = kind == "trains";
    } else if (kind == "stays") {
      one.leaves = false;  // others may leave in its place
    } else if (kind == "joins") {
      one.trains = true;
      growths_.join();
    } else if (kind == "grows" || kind == "refuses") {
      growths_.answer(number, kind == "grows");
    } else if (kind == "said") {
      std::string text;
      std::getline(words >> std::ws, text);
      one.said.push_back(text);
    } else if (kind == "ended") {
      int status = 0;
      words >> status;
      end(number, status);
    } else if (watch_) {
      std::string rest;
      std::getline(words >> std::ws, rest);
      watch_->hear(number, kind, rest);
    }
  }

  Rank& rank(const WrapperEnd& wrapper) { return ranks_[static_cast<std::size_t>(wrapper.rank)]; }

  void end(int number, int status) {
    Rank& one = ranks_[static_cast<std::size_t>(number)];
    one.state = Rank::State::ended;
    one.status = status;
    if (watch_) {
      watch_->ended(number, one.lost ? "lost" : one.succeeded() ? "ended" : describe(status));
    }
    for (const WrapperEnd& wrapper : wrappers_) {
      wrapper.lines.send(fmt::format("gone {} {}", number, one.succeeded() ? "left" : "died"));
    }
    const int unanswered = growths_.end(number);
    if (one.succeeded()) return;
    for (int request = 0; request < unanswered; ++request) ask_again_to_grow(one);
    if (!first_death_) first_death_.emplace(Seconds(options_.start_deadline_s));
    if (WIFSIGNALED(status) && !one.lost && !ending_) tell(number);
  }

  /// A rank whose wrapper, whole host or link has gone. The wrapper, if it lives, kills the rank.
  void lose(int number) {
    ranks_[static_cast<std::size_t>(number)].lost = true;
    end(number, SIGKILL);
  }

  void tell(int number) const {
    const Rank& one = ranks_[static_cast<std::size_t>(number)];
    say("rank {} (process {} on {}) {}", number, one.pid, one.host, describe(one.status));
    for (const std::string& line : one.said) {
      say("  rank {} said: {}", number, line);
    }
  }

  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& one) { return one.state == Rank::State::ended; });
  }

  /// All ranks have met: none needs the process manager any more.
  bool training_began() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.began; });
  }

  bool trained_ranks_go_on() const {
    return training_began() && std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& one) {
             return one.state == Rank::State::running;
           });
  }

  /// Ranks that have not met yet cannot do without the one that died.
  void check_start() {
    if (ending_ && ending_->expired()) {
      pass_on(SIGKILL);
      ending_.emplace(grace);
    }
    if (!ending_ && launching_.expired()) give_up_launching();
    if (!first_death_ || ending_ || !first_death_->expired() || training_began()) return;
    say("a rank ended before training began, and {:.0f} s later the others have not begun; ending "
        "them",
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
    say("{} of {} ranks have not been started within {:.0f} s; ending the others; look for what {} "
        "says, or try fastrun --doctor",
        missing, all_ranks(options_), launching_.elapsed_s(), starter_);
    pass_on(SIGTERM);
    kill_mpiexec();
    ending_.emplace(grace);
  }

  void hear_control() {
    if (!control_) return;
    for (const std::string& line : control_->new_lines()) {
      const Request request = parse_request(line, all_ranks(options_));
      const std::string problem = request.problem.empty() ? why_not(request) : request.problem;
      if (!problem.empty()) {
        say("{}: {}", options_.control, problem);
      } else if (request.what == Request::What::grow) {
        ask_to_grow();
      } else {
        ask_to_leave(request.rank);
      }
    }
  }

  /// By the clock, of --grow-at.
  void look_at_clock() {
    if (options_.grow_at.empty() || !training_began()) return;
    if (!began_at_) began_at_ = fast::Clock::now();
    const double now_s = Seconds(fast::Clock::now() - *began_at_).count();
    const auto due = [now_s](double at_s) { return at_s <= now_s; };
    for (auto count = std::erase_if(options_.grow_at, due); count > 0; --count) {
      const std::string problem = why_not_to_grow();
      problem.empty() ? ask_to_grow() : say("--grow-at: {}", problem);
    }
  }

  std::string why_not(const Request& request) const {
    return request.what == Request::What::grow ? why_not_to_grow() : why_not_to_leave(request.rank);
  }

  std::string why_not_to_grow() const {
    if (!training_began()) return "no spare can join before training begins; ask again";
    const int idle = count([](const Rank& one) {
      return one.state != Rank::State::ended && !one.trains && !one.leaves;
    });
    if (idle - growths_.under_way() < 1) return "no spare is left that could join";
    return {};
  }

  /// Any worker can pass it on to the others.
  void ask_to_grow() {
    const auto first = std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& one) {
      return one.state == Rank::State::running && one.trains && !one.leaves;
    });
    if (first == ranks_.end()) return say("no rank trains that a spare could join");
    say("a spare is asked to join");
    const auto number = static_cast<int>(first - ranks_.begin());
    growths_.ask(number);
    for (const WrapperEnd& wrapper : wrappers_) {
      if (wrapper.rank == number) wrapper.lines.send(fmt::format("grow {}", number));
    }
  }

  /// A rank that is out of reach may have passed the request on.
  void ask_again_to_grow(const Rank& gone) {
    if (!gone.lost && why_not_to_grow().empty()) return ask_to_grow();
    say("a request that a spare joins is lost with the rank that was asked; ask again");
  }

  std::string why_not_to_leave(int number) const {
    const Rank& one = ranks_[static_cast<std::size_t>(number)];
    if (one.state == Rank::State::ended) return fmt::format("rank {} has ended already", number);
    if (!training_began())
      return fmt::format("rank {} cannot leave before training begins; ask again", number);
    const int others = count([&](const Rank& other) {
      const bool stays = other.state != Rank::State::ended && other.trains && !other.leaves;
      return &other != &one && stays;
    });
    if (one.trains && !one.leaves && others < std::max(1, options_.min_workers))
      return fmt::format("rank {} cannot leave: {} would go on, --min-workers is {}", number,
                         others, options_.min_workers);
    return {};
  }

  void ask_to_leave(int number) {
    if (std::exchange(ranks_[static_cast<std::size_t>(number)].leaves, true)) return;
    say("rank {} is asked to leave", number);
    for (const WrapperEnd& wrapper : wrappers_) {
      if (wrapper.rank == number) wrapper.lines.send(fmt::format("leave {}", number));
    }
  }

  void hear_signal() {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      int status = 0;
      if (mpiexec_ > 0 && waitpid(mpiexec_, &status, WNOHANG) == mpiexec_) mpiexec_ended();
      return;
    }
    const bool again = signal == SIGINT && std::exchange(interrupted_, true);
    pass_on(again ? SIGKILL : signal == SIGHUP ? SIGTERM : signal);
    if (wrappers_.empty() && signal != SIGUSR2) kill_mpiexec();
  }

  void mpiexec_ended() {
    mpiexec_ = -1;
    if (!all_ended() && trained_ranks_go_on())
      say("{} has ended; the ranks go on without it", starter_);
  }

  void kill_mpiexec() const {
    if (mpiexec_ > 0) kill(-mpiexec_, SIGKILL);
  }

  void pass_on(int signal) const {
    for (const WrapperEnd& wrapper : wrappers_)
      wrapper.lines.send(fmt::format("signal {}", signal));
  }

  /// mpiexec would wait for their host.
  bool some_are_lost() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.lost; });
  }

  /// Lets the wrappers go, and mpiexec with them. What ranks have printed is passed on first,
  /// however long that is blocked.
  void finish() {
    finishing_ = true;
    if (watch_) watch_->finish();
    for (const WrapperEnd& wrapper : wrappers_) wrapper.lines.send("done");
    const Deadline deadline(grace);
    const auto is_over = [&] { return outputs_.is_done() && (mpiexec_ <= 0 || some_are_lost()); };
    while (outputs_.is_blocked() || (!is_over() && !deadline.expired())) turn();
    if (mpiexec_ <= 0) return;
    kill_mpiexec();
    waitpid(mpiexec_, nullptr, 0);
  }

  template <class Condition>
  int count(const Condition& condition) const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), condition));
  }

  int report() {
    const int well = count([](const Rank& one) { return one.succeeded(); });
    const int trained = count([](const Rank& one) { return one.succeeded() && one.trains; });
    tell_of(Rank::State::starting, "never started");
    tell_of(Rank::State::running, ("ended with " + starter_ + ", before training began").c_str());
    const int wanted = std::min(options_.min_workers, options_.ranks);
    if (well == all_ranks(options_)) return 0;
    const int idle = well - trained;
    const std::string of_these =
        idle > 0 ? fmt::format(" ({} of these had no part in the end)", idle) : std::string();
    say("{} of {} ranks ended well{}; {} {} required", well, all_ranks(options_), of_these, wanted,
        wanted == 1 ? "is" : "are");
    return trained >= wanted ? 0 : 1;
  }

  /// One line about all ranks in this state.
  void tell_of(Rank::State state, const char* what) const {
    std::vector<int> found;
    for (int r = 0; r < all_ranks(options_); ++r) {
      if (ranks_[static_cast<std::size_t>(r)].state == state) found.push_back(r);
    }
    if (found.empty()) return;
    say("rank{} {} {}", found.size() == 1 ? "" : "s", fmt::join(found, ", "), what);
  }

  Options options_;
  Deadline launching_{Seconds(options_.launch_deadline_s)};
  std::string token_;
  Listener listener_;
  std::vector<Rank> ranks_;
  std::vector<WrapperEnd> wrappers_;
  Outputs outputs_{[this](int descriptor, std::string_view text) {
    if (watch_) watch_->make_room(descriptor, text);
  }};
  std::unique_ptr<Watch> watch_;  ///< null: not asked for
  Descriptor signals_;
  std::optional<ControlFile> control_;
  GrowthRequests growths_;
  std::optional<fast::Clock::time_point> began_at_;  ///< training
  std::string starter_;                              ///< what the process mpiexec_ is called
  pid_t mpiexec_ = -1;
  std::optional<Deadline> first_death_, ending_;
  bool interrupted_ = false, finishing_ = false;
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
  return static_cast<int>((all_ranks(options) + hosts - 1) / hosts);
}

int launch(const Options& options) {
  fast::require(std::getenv("PMI_RANK") == nullptr, ErrorKind::argument,
                "fastrun: a process manager has started this already (PMI_RANK is set); start "
                "fastrun once, within salloc or sbatch rather than by srun or mpiexec");
  return Launcher(options).run();
}

}  // namespace fastrun
