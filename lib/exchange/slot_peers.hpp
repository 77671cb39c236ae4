// Knowledge of peers over a slot board, and the waits for them.
#pragma once

#include <condition_variable>
#include <fast/core/error.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exchange/remote_access.hpp"
#include "exchange/slot_board.hpp"

namespace fast::exchange {

/// Announces this worker, moves its heartbeat (a thread of its own), looks at the others.
class SlotPeers : public Peers {
 public:
  /// `remote` serves workers of other hosts; null when there are none.
  SlotPeers(std::shared_ptr<const SlotBoard> board, int rank,
            std::shared_ptr<RemoteAccess> remote = nullptr);
  ~SlotPeers() override;
  SlotPeers(const SlotPeers&) = delete;
  SlotPeers& operator=(const SlotPeers&) = delete;

  PeerState peer(int worker) const override;
  bool announce(WorkerStatus status) override;
  Snapshot snapshot(int worker, std::span<std::byte> room) const override;

 private:
  void beat();
  bool is_remote(int worker) const { return remote_ && remote_->is_remote(worker); }

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::shared_ptr<RemoteAccess> remote_;
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  bool stopped_ = false;
  std::thread heartbeat_;
};

/// Waits for one peer at a time, telling slow from suspect from failed.
class PeerWaiter {
 public:
  enum class Outcome { ready, suspect, finished };

  PeerWaiter(std::shared_ptr<const SlotBoard> board, int rank, const ExchangeOptions& options);

  /// What is known of a worker without waiting: finished or suspect, else ready. Throws as wait()
  /// does when it has failed.
  Outcome glance(int worker, std::string_view operation, std::int64_t round);

  /// Until ready() holds. `operation` and `round` are for messages.
  Outcome wait(int worker, const std::function<bool()>& ready, std::string_view operation,
               std::int64_t round);

 private:
  struct Watch {
    std::uint64_t heartbeat = 0;
    Clock::time_point moved = Clock::now();
    bool suspect = false;
  };
  bool is_suspect(int worker);
  void log(LogLevel level, const std::string& text) const;

  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  ExchangeOptions options_;
  std::vector<Watch> watches_;
};

}  // namespace fast::exchange
