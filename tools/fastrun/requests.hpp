// What a person asks of a run under way: that a spare joins, or that a worker leaves. Requests come
// from the control file and from the clock (--grow-at).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fastrun/ranks.hpp"

namespace fastrun {

// What a user asks of a running job, by lines that are appended to a file.

/// A line of the file, or why it says nothing.
struct Request {
  enum class What { leave, grow };
  What what = What::leave;
  int rank = -1;        ///< that shall leave
  std::string problem;  ///< empty: there is none
};

/// `leave 2` with ranks 0 to `ranks` - 1, or `grow`: a spare shall join.
Request parse_request(const std::string& line, int ranks);

/// A file of any file system that this process sees. What it holds at first is skipped: it is of an
/// earlier job.
class ControlFile {
 public:
  /// Makes the file if it is not there. Throws Error(argument) if it cannot be read or made, or is
  /// no regular file.
  explicit ControlFile(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    fast::require(!std::filesystem::exists(path_, ignored) || S_ISREG(status_of(path_).st_mode),
                  fast::ErrorKind::argument,
                  "fastrun: --control {} is not a regular file; choose another file", path_);
    const bool made = std::ofstream(path_, std::ios::app).good();
    std::ifstream in(path_, std::ios::binary | std::ios::ate);
    fast::require(made && in.good(), fast::ErrorKind::argument,
                  "fastrun: --control {} cannot be written; choose another file", path_);
    read_ = in.tellg();
    note_state();
  }

  /// Whole lines that have been appended since the last call; blank ones are left out. A file that
  /// was written anew, or that is another one, is read from its beginning. Does not block.
  std::vector<std::string> new_lines() {
    const struct stat now = status_of(path_);
    if (now.st_ino == 0) return {};
    const bool same_size = now.st_size == read_, written = now.st_mtim.tv_sec != written_.tv_sec ||
                                                           now.st_mtim.tv_nsec != written_.tv_nsec;
    if (now.st_ino == number_ && same_size && !written) return {};
    if (now.st_ino != number_ || now.st_size < read_ || same_size) read_ = 0;
    std::ifstream in(path_, std::ios::binary);
    if (!in.seekg(read_)) return {};
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t whole = text.rfind('\n') + 1;  // 0 if there is none
    read_ += static_cast<std::streamoff>(whole);
    note_state();
    std::istringstream lines(text.substr(0, whole));
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      if (line.find_first_not_of(" \t\r") != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  /// Of a file that is not there: all 0.
  static struct stat status_of(const std::string& path) {
    struct stat found {};
    if (stat(path.c_str(), &found) != 0) return {};
    return found;
  }

  void note_state() {
    const struct stat now = status_of(path_);
    number_ = now.st_ino;
    written_ = now.st_mtim;
  }

  std::string path_;
  ino_t number_ = 0;         ///< of the file
  timespec written_{};       ///< when it was last changed
  std::streamoff read_ = 0;  ///< bytes
};

// Which requests that a spare joins are under way.

/// Each is passed on by one rank, which answers whether a spare shall join. Then one does.
class GrowthRequests {
 public:
  /// That rank is asked to pass one on.
  void ask(int rank) { ++unanswered_[rank]; }
  /// It has answered. A spare that shall join counts as under way until one joins.
  void answer(int rank, bool grows) {
    if (unanswered_[rank] > 0) --unanswered_[rank];
    if (grows) ++accepted_;
  }

  void join() {
    if (accepted_ > 0) --accepted_;
  }

  /// That rank has ended. Returns how many requests it has left without an answer; they are not
  /// under way any more.
  int end(int rank) {
    const auto found = unanswered_.find(rank);
    if (found == unanswered_.end()) return 0;
    const int left = found->second;
    unanswered_.erase(found);
    return left;
  }

  /// Spares that they need.
  int under_way() const {
    int sum = accepted_;
    for (const auto& [rank, count] : unanswered_) sum += count;
    return sum;
  }

 private:
  std::map<int, int> unanswered_;  ///< by rank
  int accepted_ = 0;
};

class Requests {
 public:
  using Say = std::function<void(const std::string& line)>;
  /// `send` brings a line to the wrapper of a rank; the line ends with the rank's number.
  using Send = std::function<void(int rank, const std::string& line)>;
  /// `ranks` outlives this.
  Requests(const Options& options, Ranks& ranks, Say say, Send send)
      : options_(options), ranks_(ranks), say_(std::move(say)), send_(std::move(send)) {
    if (!options.control.empty()) control_.emplace(options.control);
  }

  /// Looks at the control file and at the clock.
  void look() {
    hear_control();
    look_at_clock();
  }

  /// The rank that was asked to leave stays. Others may leave in its place.
  void refuses_to_leave(int rank) {
    ranks_[rank].leaves = false;
    ranks_[rank].refuses = true;
  }

  /// To be told of the answers of ranks, and of spares that have joined.
  GrowthRequests& growths() { return growths_; }
  /// That rank has ended. What it was asked to pass on goes to another one.
  void ended(int rank) {
    const int unanswered = growths_.end(rank);
    const Rank& gone = ranks_[rank];
    if (gone.has_finished()) {
      if (unanswered > 0) say_(after_the_end);
      return;
    }
    for (int request = 0; request < unanswered; ++request) ask_again_to_grow(gone);
  }

 private:
  static constexpr const char* after_the_end = "training has ended; no worker joins";

  void hear_control() {
    if (!control_) return;
    for (const std::string& line : control_->new_lines()) {
      const Request request = parse_request(line, ranks_.size());
      const std::string problem = request.problem.empty() ? why_not(request) : request.problem;
      if (!problem.empty()) {
        say_(fmt::format("{}: {}", options_.control, problem));
      } else if (request.what == Request::What::grow) {
        ask_to_grow();
      } else {
        ask_to_leave(request.rank);
      }
    }
  }

  void look_at_clock() {
    if (options_.grow_at.empty() || !ranks_.training_began()) return;
    if (!began_at_) began_at_ = fast::Clock::now();
    const double now_s = fast::Seconds(fast::Clock::now() - *began_at_).count();
    const auto due = [now_s](double at_s) { return at_s <= now_s; };
    for (auto count = std::erase_if(options_.grow_at, due); count > 0; --count) {
      const std::string problem = why_not_to_grow();
      problem.empty() ? ask_to_grow() : say_(fmt::format("--grow-at: {}", problem));
    }
  }

  std::string why_not(const Request& request) const {
    return request.what == Request::What::grow ? why_not_to_grow() : why_not_to_leave(request.rank);
  }

  std::string why_not_to_grow() const {
    if (!ranks_.training_began()) return "no spare can join before training begins; ask again";
    if (ranks_.count(&Rank::has_finished) > 0) return after_the_end;
    const int idle = ranks_.count([](const Rank& one) { return one.is_idle(); });
    if (idle - growths_.under_way() < 1) return "no spare is left that could join";
    return {};
  }

  std::string why_not_to_leave(int number) const {
    const Rank& one = ranks_[number];
    if (one.state == Rank::State::ended) return fmt::format("rank {} has ended already", number);
    if (!ranks_.training_began())
      return fmt::format("rank {} cannot leave before training begins; ask again", number);
    if (one.refuses) return fmt::format("rank {} cannot leave: it has refused", number);
    const int others =
        ranks_.count([&](const Rank& other) { return &other != &one && other.stays(); });
    if (one.trains && !one.leaves && others < std::max(1, options_.min_workers))
      return fmt::format("rank {} cannot leave: {} would go on, --min-workers is {}", number,
                         others, options_.min_workers);
    return {};
  }

  /// Any worker can pass it on to the others.
  void ask_to_grow() {
    const std::optional<int> first = ranks_.first_that_trains();
    if (!first) return say_("no rank trains that a spare could join");
    say_("a spare is asked to join");
    growths_.ask(*first);
    send_(*first, fmt::format("grow {}", *first));
  }

  /// A rank that is out of reach may have passed the request on.
  void ask_again_to_grow(const Rank& gone) {
    if (!gone.lost && why_not_to_grow().empty()) return ask_to_grow();
    say_("a request that a spare joins is lost with the rank that was asked; ask again");
  }

  void ask_to_leave(int number) {
    if (std::exchange(ranks_[number].leaves, true)) return;
    say_(fmt::format("rank {} is asked to leave", number));
    send_(number, fmt::format("leave {}", number));
  }

  Options options_;
  Ranks& ranks_;
  Say say_;
  Send send_;
  std::optional<ControlFile> control_;
  GrowthRequests growths_;
  std::optional<fast::Clock::time_point> began_at_;  ///< training
};

}  // namespace fastrun
