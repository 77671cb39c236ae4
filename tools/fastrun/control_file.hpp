// What a user asks of a running job, by lines that are appended to a file.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace fastrun {

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

}  // namespace fastrun
