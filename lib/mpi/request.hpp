// An MPI operation under way, as an owning type.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/mpi/communicator.hpp>

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <optional>
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

// Two-sided messages that never block: sends and receives whose requests the caller tests.

/// A buffer belongs to MPI until its request is done. A message has at most 2³¹ - 1 bytes.
class Messages {
 public:
  /// Collective. No message of another communicator is received here.
  Messages(const Communicator& communicator, const Deadline& deadline);

  /// The request is done only after the receiver has begun to receive (MPI_Issend). If it is not
  /// done at the end, keep this object for good: else a later communicator, to which MPI gives the
  /// same context, may receive the message.
  Request send(int rank, int tag, const void* from, std::size_t size_bytes) const;
  /// For a message whose receiver has started the receive, or starts it after an earlier message.
  /// The request may be done before (MPI_Isend). If the receiver may have given up, keep this
  /// object for good.
  Request send_expected(int rank, int tag, const void* from, std::size_t size_bytes) const;
  Request receive(int rank, int tag, void* to, std::size_t size_bytes) const;

  struct Unsolicited {
    int rank = 0;
    int tag = 0;
  };
  /// A message that has arrived, but for which no receive has been started. Lets MPI make progress.
  std::optional<Unsolicited> unsolicited() const;

 private:
  Communicator communicator_;
};

}  // namespace fast::mpi
