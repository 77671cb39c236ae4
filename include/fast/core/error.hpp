// Errors: one exception type, a kind per family, a message of the form
// "operation: what was found, what was required, what to do".
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace fast {

enum class ErrorKind {
  argument,     ///< a caller's value is out of range or a name is unknown
  data,         ///< a data or model file is missing, truncated or malformed
  topology,     ///< a topology, schedule or mixing matrix does not hold what is required of it
  mismatch,     ///< workers disagree about model, options or library version
  deadline,     ///< a wait took longer than its deadline
  mpi,          ///< an MPI call failed
  resource,     ///< memory, /dev/shm, disk or a device does not suffice
  numeric,      ///< a loss or weight is not finite
  peer_failed,  ///< another worker failed and has reported why; not to be reported again
  internal,     ///< a broken invariant of the library
};

/// What every function of the library throws on a caller's mistake or a failed wait.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, bool everywhere = false)
      : std::runtime_error(message), kind_(kind), everywhere_(everywhere) {}
  ErrorKind kind() const noexcept { return kind_; }
  /// True when every worker of the run throws this same error: worker 0 alone reports it.
  bool everywhere() const noexcept { return everywhere_; }
  /// True for the one worker that should print the error, and for a program of one worker.
  bool to_be_reported_by(int rank) const noexcept {
    return kind_ != ErrorKind::peer_failed && (!everywhere_ || rank == 0);
  }

 private:
  ErrorKind kind_;
  bool everywhere_;
};

/// Throws Error. Its type has nothing of fmt: a program may have another version of fmt than the
/// library, as that in the headers of LibTorch.
[[noreturn]] void fail_with(ErrorKind kind, const std::string& message);

/// Throws Error with a formatted message.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  fail_with(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error with a formatted message unless `condition` holds.
template <class... Args>
void require(bool condition, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail_with(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace fast
