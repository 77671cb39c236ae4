// A connection to a NATS server that comes back by itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "stream/broker.hpp"
#include "stream/nats/handles.hpp"

namespace fast::stream {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws Error(resource) when the server cannot be reached.
  Connection(const Address& address, const BrokerOptions& options);
  /// Callbacks do not run afterwards.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  natsConnection* handle() const { return connection_; }
  const std::string& shown() const { return shown_; }
  std::chrono::milliseconds patience() const { return options_.patience; }

  bool is_up() const;
  /// Throws Error(resource) when the connection is lost for longer than the patience, or closed.
  void require_alive() const;

 private:
  static void on_lost(natsConnection*, void* self);
  static void on_back(natsConnection*, void* self);
  static void on_closed(natsConnection*, void* self);
  void lost();
  void back();
  void log(LogLevel level, const std::string& text) const;

  const BrokerOptions options_;
  const std::string shown_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Clock::time_point> lost_since_;
  bool is_closed_ = false, ends_ = false;
  natsConnection* connection_ = nullptr;
};

}  // namespace fast::stream
