// An MPI operation under way, as an owning type.
#pragma once

#include <mpi.h>

#include <fast/core/deadline.hpp>
#include <functional>
#include <vector>

namespace fast::mpi {

/// Asks done() with longer and longer pauses. False when the deadline passed first, or when the
/// launcher reports that one of `members` has ended: the ranks of the world that must take part; or
/// when `gives_up`, if given, is true.
bool wait_until(const std::function<bool()>& done, const Deadline& deadline,
                const std::vector<int>& members = {}, const std::function<bool()>& gives_up = {});

/// Owns one MPI_Request. MPI uses the operation's buffers until test() or wait() has returned true.
///
/// The destructor never blocks on another rank. If the operation is under way, it does this:
/// - It cancels a receive, which is a local operation, and waits at most `cancel_limit` for MPI.
/// - It leaves any other operation to MPI, which forbids canceling it. The buffers must then stay
///   valid until the process ends: call leak_until_exit() for them before.
class Request {
 public:
  enum class Kind { receive, other };
  static constexpr Seconds cancel_limit{0.1};
  static constexpr int no_peer = -1;

  Request() = default;  ///< no operation: done
  /// Takes ownership of `request`. Errors name `call` (a literal) and the other rank, if one.
  Request(MPI_Request request, const char* call, int peer = no_peer, Kind kind = Kind::other)
      : request_(request), call_(call), peer_(peer), kind_(kind) {}
  /// `other` is then a Request without operation.
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  ~Request();

  /// True when the operation is done. Lets MPI make progress while it is not. Throws Error(mpi) if
  /// the operation has failed, in every later call too.
  bool test();
  /// wait_until(test()). If it is false, the operation is still under way.
  bool wait(const Deadline& deadline, const std::vector<int>& members = {},
            const std::function<bool()>& gives_up = {}) {
    return wait_until([this] { return test(); }, deadline, members, gives_up);
  }
  /// What the latest test() found, without a call of MPI.
  bool is_under_way() const { return request_ != MPI_REQUEST_NULL; }

 private:
  void give_up() noexcept;

  MPI_Request request_ = MPI_REQUEST_NULL;
  const char* call_ = "";
  int peer_ = no_peer;
  Kind kind_ = Kind::other;
  int code_ = MPI_SUCCESS;  ///< of the latest MPI_Test
};

}  // namespace fast::mpi
