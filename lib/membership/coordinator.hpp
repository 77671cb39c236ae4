// What a rank does beside training to agree with the others: one thread, one mutex and one record
// for each rank of a group, whatever the protocols are.
#pragma once

#include <fast/core/deadline.hpp>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "membership/gossip.hpp"
#include "membership/liveness.hpp"
#include "membership/periodic_thread.hpp"
#include "membership/records.hpp"

namespace fast::membership {

/// Something on which ranks agree. Its owner adds it to a Coordinator and removes it.
class Protocol {
 public:
  Protocol() = default;
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
  /// Before advance(), without the lock.
  virtual void listen() {}
  /// The coordinator holds its lock during these.
  virtual void advance() = 0;
  /// The next tick should follow quickly.
  virtual bool is_busy() const = 0;

 protected:
  ~Protocol() = default;
};

/// How a rank reaches the others.
struct Reach {
  int rank = 0;
  std::vector<std::byte*> parts;           ///< by rank, zeroed memory for a record each
  std::shared_ptr<void> owner;             ///< of that memory
  std::vector<int> hosts;                  ///< by rank, equal for ranks of one host
  std::unique_ptr<Datagrams> datagrams;    ///< as Gossip has them; null on one host
  std::function<std::vector<int>()> died;  ///< ranks that the launcher has reported; any thread
};

class Coordinator {
 public:
  Coordinator(Reach reach, const RecordBoard::Format& format);

  /// Begins the thread: it ticks ten times a second, or a hundred times while a protocol is busy.
  void start();
  /// `elapsed`: since the last tick, as far as this process was running. True: a protocol is busy.
  bool tick(Seconds elapsed);

  void add(Protocol& protocol);
  /// Waits for the end of a tick under way.
  void remove(Protocol& protocol);

  // Of protocols, and of those that ask them.
  const RecordBoard& board() const { return board_; }
  /// Guarded by the lock.
  Liveness& liveness() { return liveness_; }
  const Liveness& liveness() const { return liveness_; }
  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
  /// Blocks until the next tick, or for a moment. Throws what a WaitCheck of this thread throws.
  void wait(std::unique_lock<std::mutex>& lock) const;
  std::vector<int> died() const { return reach_.died ? reach_.died() : std::vector<int>{}; }

  /// Within this time news reach all ranks of other hosts; 0 without other hosts.
  Seconds news() const;
  /// Waits for that time.
  void spread_news() const;

  /// True once: the words of a run are used by one run only.
  bool claim_for_run() { return !std::exchange(has_run_, true); }

 private:
  Reach reach_;
  RecordBoard board_;
  Gossip gossip_;               ///< the thread's
  std::mutex protocols_mutex_;  ///< guards protocols_; held during a tick
  std::vector<Protocol*> protocols_;
  mutable std::mutex mutex_;  ///< guards liveness_ and what the protocols know
  mutable std::condition_variable ticked_;
  Liveness liveness_;
  bool has_run_ = false;
  std::optional<PeriodicThread> thread_;  ///< declared last: it uses all others
};

}  // namespace fast::membership
