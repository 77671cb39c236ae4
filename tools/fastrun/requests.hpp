// What a person asks of a run under way: that a spare joins, or that a worker leaves. Requests come
// from the control file and from the clock (--grow-at).
#pragma once

#include <fast/core/deadline.hpp>

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
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
  explicit ControlFile(std::string path);

  /// Whole lines that have been appended since the last call; blank ones are left out. A file that
  /// was written anew, or that is another one, is read from its beginning. Does not block.
  std::vector<std::string> new_lines();

 private:
  std::string path_;
  void note_state();

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
  Requests(const Options& options, Ranks& ranks, Say say, Send send);

  /// Looks at the control file and at the clock.
  void look();
  /// The rank that was asked to leave stays. Others may leave in its place.
  void refuses_to_leave(int rank);
  /// To be told of the answers of ranks, and of spares that have joined.
  GrowthRequests& growths() { return growths_; }
  /// That rank has ended. What it was asked to pass on goes to another one.
  void ended(int rank);

 private:
  void hear_control();
  void look_at_clock();
  std::string why_not(const Request& request) const;
  std::string why_not_to_grow() const;
  std::string why_not_to_leave(int number) const;
  void ask_to_grow();
  void ask_again_to_grow(const Rank& gone);
  void ask_to_leave(int number);

  Options options_;
  Ranks& ranks_;
  Say say_;
  Send send_;
  std::optional<ControlFile> control_;
  GrowthRequests growths_;
  std::optional<fast::Clock::time_point> began_at_;  ///< training
};

}  // namespace fastrun
