#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/exit_status.hpp"
#include "core/message.hpp"
#include "fastrun/channel.hpp"
#include "fastrun/connections.hpp"
#include "fastrun/fastrun.hpp"
#include "fastrun/host.hpp"
#include "fastrun/output.hpp"
#include "fastrun/ranks.hpp"
#include "fastrun/requests.hpp"
#include "fastrun/starter.hpp"
#include "fastrun/watch.hpp"
#include "mpi/process_manager.hpp"

namespace fastrun {
namespace {

using fast::Deadline;
using fast::ErrorKind;
using fast::Seconds;

constexpr Seconds grace{5};  ///< from SIGTERM to SIGKILL
constexpr Seconds until_early_ends_are_told{8};
constexpr int poll_ms = 100;

class Launcher {
 public:
  explicit Launcher(const Options& options)
      : options_(options),
        links_(is_on_one_host(options)),
        ranks_(options),
        requests_(
            options, ranks_, [this](const std::string& line) { say("{}", line); },
            [this](int rank, const std::string& line) { links_.send(rank, line); }) {
    signals_ = signals_to_hear();
    if (options.watch) watch_ = std::make_unique<Watch>(static_cast<std::size_t>(ranks_.size()));
  }

  int run() {
    set_environment(options_, {links_.port(), links_.token()});
    starter_.start(options_, descriptors_);
    while (!ranks_.all_ended() &&
           (starter_.runs() || ranks_.trained_ones_go_on() || some_are_being_ended())) {
      turn();
      check_start();
      requests_.look();
    }
    finish();
    const int status = report();
    if (!outputs_.has_lost_output()) return status;
    say("what the ranks printed could not be written to standard output");
    return status == 0 ? tools::failed : status;
  }

 private:
  template <class... Values>
  void say(fmt::format_string<Values...> format, Values&&... values) const {
    if (watch_) watch_->erase();
    fast::say("fastrun: {}\n", fmt::format(format, std::forward<Values>(values)...));
  }

  /// Waits for something to happen, and does what follows from it.
  void turn() {
    std::vector<pollfd> watched{{signals_.get(), POLLIN, 0}};
    links_.watch(watched);
    outputs_.watch(watched);
    poll(watched.data(), watched.size(), poll_ms);
    outputs_.advance();
    for (std::size_t w = links_.wrappers().size(); w-- > 0;) {  // backwards: hear() may erase
      if (watched[w + 2].revents != 0) hear(w);
    }
    if (watched[1].revents != 0) accept_wrapper();
    links_.close_strangers();
    if (watched[0].revents != 0) hear_signal();
    if (watch_ && !finishing_) watch_->draw();
  }

  void accept_wrapper() {
    if (links_.accept(Seconds(options_.lost_after_s))) return;
    const int why = errno;
    fast::fail(ErrorKind::resource,
               "fastrun: a rank cannot be connected ({}): {} descriptors are allowed, and {} "
               "ranks need two each; raise the limit (ulimit -Hn), or start fewer ranks",
               std::strerror(why), descriptors_.most(), all_ranks(options_));
  }

  void hear(std::size_t index) {
    WrapperEnd& wrapper = links_.wrappers()[index];
    const auto received = wrapper.lines.receive();
    const std::vector<std::string> lines = received.value_or(std::vector<std::string>{});
    for (auto line = lines.begin(); line != lines.end(); ++line) {
      if (!wrapper.trusted) {
        wrapper.trusted = *line == "token " + links_.token();
        if (!wrapper.trusted) break;
      } else if (line->starts_with(output_follows)) {
        return take_output(index, {line, lines.end()});
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
    links_.wrappers().erase(links_.wrappers().begin() + static_cast<std::ptrdiff_t>(index));
  }

  /// From now on the connection carries what a rank prints, and has begun to.
  void take_output(std::size_t index, const std::vector<std::string>& lines) {
    const int rank = std::atoi(lines.front().c_str() + output_follows.size());
    std::string begun;
    for (auto line = lines.begin() + 1; line != lines.end(); ++line) (begun += *line) += '\n';
    auto [connection, rest] = links_.wrappers()[index].lines.release();
    outputs_.add(std::move(connection), begun + rest, rank);
    links_.wrappers().erase(links_.wrappers().begin() + static_cast<std::ptrdiff_t>(index));
  }

  void take(WrapperEnd& wrapper, const std::string& line) {
    std::istringstream words(line);
    std::string kind;
    int number = -1;
    words >> kind >> number;
    if (number < 0 || number >= all_ranks(options_)) return;
    Rank& one = ranks_[number];
    if (kind == "hello") {
      wrapper.rank = number;
      words >> one.pid >> one.host;
      std::getline(words >> std::ws, one.not_startable);
      one.state = Rank::State::running;
      if (watch_) watch_->joined(number, one.host);
      if (stop_signal_) wrapper.lines.send(fmt::format("signal {}", *stop_signal_));
      if (finishing_) wrapper.lines.send("done");
    } else if (kind == "began") {
      one.began = true;
    } else if (kind == "trains" || kind == "idles") {
      one.trains = kind == "trains";
    } else if (kind == "stays") {
      requests_.refuses_to_leave(number);
    } else if (kind == "joins") {
      one.trains = true;
      requests_.growths().join();
    } else if (kind == "grows" || kind == "refuses") {
      requests_.growths().answer(number, kind == "grows");
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

  Rank& rank(const WrapperEnd& wrapper) { return ranks_[wrapper.rank]; }

  void end(int number, int status) {
    Rank& one = ranks_[number];
    one.state = Rank::State::ended;
    one.status = status;
    if (watch_) {
      watch_->ended(number, one.lost ? "lost" : one.succeeded() ? "ended" : describe(status));
    }
    links_.report_ranks(fmt::format("gone {} {}", number, one.how_ended()));
    requests_.ended(number);
    if (!first_end_) first_end_.emplace(until_early_ends_are_told);
    if (one.succeeded()) return;
    if (!first_death_) first_death_.emplace(Seconds(options_.start_deadline_s));
    if (one.lost || ending_) return;
    if (!first_failed_ && WIFEXITED(status) && one.not_startable.empty()) first_failed_ = number;
    if (WIFSIGNALED(status)) tell(number);
  }

  /// A rank whose wrapper, whole host or link has gone. The wrapper, if it lives, kills the rank.
  void lose(int number) {
    ranks_[number].lost = true;
    end(number, SIGKILL);
  }

  void tell(int number) {
    const Rank& one = ranks_[number];
    told_ = true;
    say("rank {} (process {} on {}) {}", number, one.pid, one.host, describe(one.status));
    for (const std::string& line : one.said) say("  rank {} said: {}", number, line);
  }

  /// Ranks that have not met yet cannot do without the one that died. Once all that were started
  /// have ended, the others are not waited for.
  void check_start() {
    report_of_program(false);
    if (first_end_ && first_end_->expired() && !std::exchange(early_ends_told_, true)) {
      const std::string ends = early_ends(ranks_);
      if (!ends.empty() && !ending_) say("{}", ends);
    }
    if (ending_ && ending_->expired()) {
      pass_on(SIGKILL);
      ending_.emplace(grace);
    }
    if (ending_ && ranks_.in_state(Rank::State::running).empty()) starter_.kill();
    if (!ending_) check_launching();
    if (!first_death_ || ending_ || !first_death_->expired() || ranks_.training_began()) return;
    say("a rank ended before training began, and {:.0f} s later the others have not begun; ending "
        "them",
        options_.start_deadline_s);
    pass_on(SIGTERM);
    ending_.emplace(grace);
  }

  void check_launching() {
    const std::size_t missing = ranks_.in_state(Rank::State::starting).size();
    if (missing == 0) return;
    const std::string some = fmt::format("{} of {} ranks", missing, all_ranks(options_));
    if (const auto lost = connections_.failure(starter_.process(), fast::Clock::now())) {
      give_up_launching(fmt::format("{}; {} are not started", *lost, some));
    } else if (stopping_ && stopping_->expired()) {
      give_up_launching(fmt::format("{} were not started when the signal came", some));
    } else if (launching_.expired()) {
      give_up_launching(
          fmt::format("{} have not been started within {:.0f} s", some, launching_.elapsed_s()));
    }
  }

  /// What mpiexec says is all there is to tell why.
  void give_up_launching(const std::string& why) {
    say("{}; ending the others; look for what {} says, or try fastrun --doctor", why,
        starter_.name());
    pass_on(SIGTERM);
    starter_.kill();
    ending_.emplace(grace);
  }

  void hear_signal() {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      if (starter_.has_ended() && !ranks_.all_ended() && ranks_.trained_ones_go_on())
        say("{} has ended; the ranks go on without it", starter_.name());
      return;
    }
    if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGXCPU) return ask_to_save();
    const bool again = signal == SIGINT && std::exchange(interrupted_, true);
    if (again) ending_.emplace(grace);
    stop_signal_ = again ? SIGKILL : signal == SIGHUP ? SIGTERM : signal;
    pass_on(*stop_signal_);
    if (!stopping_) stopping_.emplace(grace);
    if (finishing_) drop_output_.emplace(drop_output_ ? Seconds(0) : grace);
    if (links_.wrappers().empty()) starter_.kill();
  }

  /// Queue systems announce the end of a job's time by one of several signals. Ranks get SIGUSR2
  /// for all of them: the process manager itself sends SIGUSR1 to the survivors of a death.
  void ask_to_save() {
    if (!stop_signal_) stop_signal_ = SIGUSR2;
    pass_on(SIGUSR2);
  }

  void pass_on(int signal) const { links_.report_ranks(fmt::format("signal {}", signal)); }

  /// Ranks have the grace to end in, also if mpiexec is gone.
  bool some_are_being_ended() const {
    return ending_ && !ranks_.in_state(Rank::State::running).empty();
  }

  /// Lets the wrappers go, and mpiexec with them, which would wait for hosts that are lost. What
  /// ranks have printed is passed on first, however long that is blocked, unless a signal comes.
  void finish() {
    finishing_ = true;
    if (watch_) watch_->finish();
    links_.report_ranks("done");
    const Deadline deadline(grace);
    const auto is_over = [&] {
      return outputs_.is_done() && (!starter_.runs() || ranks_.some_are_lost());
    };
    const auto is_dropped = [&] { return drop_output_ && drop_output_->expired(); };
    while (!is_dropped() && (outputs_.is_blocked() || (!is_over() && !deadline.expired()))) turn();
    logs_.finish();
    if (outputs_.is_blocked()) say("nobody reads the output; what is left of it is dropped");
    starter_.end();
  }

  int report() {
    report_of_program(true);
    const int well = ranks_.count([](const Rank& one) { return one.succeeded(); });
    const int trained = ranks_.count([](const Rank& one) { return one.succeeded() && one.trains; });
    report_of(Rank::State::starting, "never started; try fastrun --doctor");
    report_of(Rank::State::running,
              fmt::format("ended with {}, before training began", starter_.name()));
    const int wanted = std::min(options_.min_workers, options_.ranks);
    if (well == all_ranks(options_)) return 0;
    if (const auto status = status_that_is_told(ranks_, first_failed_)) return *status;
    const std::string silent = silent_failure(ranks_, first_failed_);
    if (!silent.empty() && !told_ && !program_told_) say("{}", silent);
    const int idle = well - trained;
    const std::string of_these =
        idle > 0 ? fmt::format(" ({} of these had no part in the end)", idle) : std::string();
    say("{} of {} ranks ended well{}; {} {} required", well, all_ranks(options_), of_these, wanted,
        wanted == 1 ? "is" : "are");
    if (trained >= wanted) return 0;
    return is_wrong_usage(ranks_, first_failed_) ? tools::wrong_usage : tools::failed;
  }

  /// Once: when all ranks were started, or at the end.
  void report_of_program(bool at_end) {
    if (program_told_ || (!at_end && !ranks_.in_state(Rank::State::starting).empty())) return;
    const std::string missing = missing_program(options_.program.front(), ranks_);
    if (missing.empty()) return;
    program_told_ = true;
    say("{}", missing);
  }

  /// One line about all ranks in this state.
  void report_of(Rank::State state, const std::string& what) const {
    const std::vector<int> found = ranks_.in_state(state);
    if (found.empty()) return;
    say("rank{} {} {}", found.size() == 1 ? "" : "s", fmt::join(found, ", "), what);
  }

  Options options_;
  Deadline launching_{Seconds(options_.launch_deadline_s)};
  RankLinks links_;
  Ranks ranks_;
  Requests requests_;
  RankLogs logs_{options_.log_dir, all_ranks(options_),
                 [this](const std::string& line) { say("{}", line); }};
  Outputs outputs_{
      options_.prefix,
      [this](int descriptor, std::string_view text) {
        if (watch_) watch_->make_room(descriptor, text);
      },
      [this](int rank, char stream, std::string_view text) { logs_.add(rank, stream, text); }};
  std::unique_ptr<Watch> watch_;  ///< null: not asked for
  Descriptor signals_;
  DescriptorLimit descriptors_;
  Starter starter_;
  Connections connections_{options_.hosts};
  std::optional<Deadline> first_end_, first_death_, ending_;
  std::optional<int> stop_signal_;    ///< for wrappers that come later, too
  std::optional<Deadline> stopping_;  ///< since the first one, for ranks that are not started
  std::optional<Deadline> drop_output_;
  std::optional<int> first_failed_;  ///< by itself, with a status above 0
  bool told_ = false;                ///< how a rank died
  bool program_told_ = false;        ///< that hosts cannot start it
  bool early_ends_told_ = false;     ///< or there are none
  bool interrupted_ = false, finishing_ = false;
};

}  // namespace

int launch(const Options& options) {
  fast::require(!fast::mpi::started(), ErrorKind::argument,
                "fastrun: a process manager has started this already (it has set PMI_RANK, "
                "PMIX_RANK or OMPI_COMM_WORLD_RANK); start fastrun once, within salloc or sbatch "
                "rather than by srun or mpiexec");
  return Launcher(options).run();
}

}  // namespace fastrun
