// Waits for one peer at a time and tells slow, suspect and failed peers apart.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/shared/heartbeat.hpp"

namespace fast::exchange {

class PeerWaiter {
 public:
  enum class Outcome { ready, suspect, finished };

  PeerWaiter(std::shared_ptr<Heartbeat> heartbeat, const ExchangeOptions& options);

  /// The worker's state without waiting: finished or suspect, else ready. Throws
  /// Error(peer_failed) if the worker has failed.
  Outcome check(int worker, std::string_view operation, std::int64_t round);

  /// Blocks until ready() is true or the worker is suspect or finished. Throws as Exchange does.
  /// `operation` and `round` are for messages. `awaited`: the changes that ready() depends on.
  template <class IsReady>
  Outcome wait(int worker, const IsReady& ready, std::string_view operation, std::int64_t round,
               Change awaited = Change::other) {
    return ready() ? Outcome::ready : wait_until(worker, ready, operation, round, awaited);
  }

 private:
  int named(int worker) const;
  int own_name() const { return named(heartbeat_->rank()); }
  bool is_suspect(int worker, std::int64_t round);
  Outcome wait_until(int worker, const std::function<bool()>& ready, std::string_view operation,
                     std::int64_t round, Change awaited);
  Outcome wait_longer(int worker, const std::function<bool()>& ready, std::string_view operation,
                      std::int64_t round, Change awaited);
  void tell(PeerEvent::Kind kind, int worker, std::int64_t round) const;
  void log(LogLevel level, const std::string& text) const;

  std::shared_ptr<Heartbeat> heartbeat_;
  ExchangeOptions options_;
  std::vector<bool> suspects_;  ///< by worker: as logged
};

}  // namespace fast::exchange
