// Waits for one peer at a time, telling slow from suspect from failed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/shared/heart.hpp"

namespace fast::exchange {

class PeerWaiter {
 public:
  enum class Outcome { ready, suspect, finished };

  PeerWaiter(std::shared_ptr<Heart> heart, const ExchangeOptions& options);

  /// What is known of a worker without waiting: finished or suspect, else ready. Throws as wait()
  /// does when it has failed.
  Outcome glance(int worker, std::string_view operation, std::int64_t round);

  /// Until ready() holds. `operation` and `round` are for messages.
  Outcome wait(int worker, const std::function<bool()>& ready, std::string_view operation,
               std::int64_t round);

 private:
  PeerState own() const;
  bool is_suspect(int worker);
  void log(LogLevel level, const std::string& text) const;

  std::shared_ptr<Heart> heart_;
  ExchangeOptions options_;
  std::vector<bool> suspects_;  ///< by worker; as the log says
};

}  // namespace fast::exchange
