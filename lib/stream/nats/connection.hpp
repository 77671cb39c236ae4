// A connection to a NATS server that comes back by itself.
#pragma once

#include <nats/nats.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "stream/broker.hpp"

namespace fast::stream {

/// The client library's objects, owned; its errors as text.
template <auto destroy>
struct Destroys {
  template <class T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};

using OptionsHandle = std::unique_ptr<natsOptions, Destroys<natsOptions_Destroy>>;
using ContextHandle = std::unique_ptr<jsCtx, Destroys<jsCtx_Destroy>>;
using SubscriptionHandle = std::unique_ptr<natsSubscription, Destroys<natsSubscription_Destroy>>;
using MessageHandle = std::unique_ptr<natsMsg, Destroys<natsMsg_Destroy>>;
using NamesHandle = std::unique_ptr<jsStreamNamesList, Destroys<jsStreamNamesList_Destroy>>;
using StreamInfoHandle = std::unique_ptr<jsStreamInfo, Destroys<jsStreamInfo_Destroy>>;
using ConsumerInfoHandle = std::unique_ptr<jsConsumerInfo, Destroys<jsConsumerInfo_Destroy>>;

/// Of the call that this thread made last, without the library's "(FILE:LINE): ".
inline std::string text_of(natsStatus status) {
  natsStatus last = NATS_OK;
  const char* detail = nats_GetLastError(&last);
  if (last != status || detail == nullptr || *detail == '\0') return natsStatus_GetText(status);
  const std::string text = detail;
  const std::size_t end = text.starts_with('(') ? text.find("): ") : text.npos;
  return end == text.npos ? text : text.substr(end + 3);
}

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws Error(resource) when no server of the address can be reached, or when none can be
  /// trusted, or when none lets this program in. The text says what to do.
  Connection(const Address& address, const BrokerOptions& options);
  /// Callbacks do not run afterwards.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  natsConnection* handle() const { return connection_; }
  const std::string& shown() const { return shown_; }
  std::chrono::milliseconds patience() const { return options_.patience; }

  bool is_up() const;
  /// The largest message that the server takes; below 1: any. It may be another server after a
  /// loss.
  std::int64_t most_bytes() const { return most_bytes_; }
  /// Throws Error(resource) when the connection is lost for longer than the patience, or closed.
  void require_alive() const;

 private:
  static void on_error(natsConnection* connection, natsSubscription*, natsStatus, void* self);
  static void on_lost(natsConnection*, void* self);
  static void on_back(natsConnection*, void* self);
  static void on_closed(natsConnection*, void* self);
  void refused(const std::string& why);
  void lost();
  void back();
  void log(LogLevel level, const std::string& text) const;
  void ask_most_bytes() { most_bytes_ = natsConnection_GetMaxPayload(connection_); }

  const BrokerOptions options_;
  const std::string shown_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Clock::time_point> lost_since_;
  bool is_closed_ = false, ends_ = false;
  std::string refused_;  ///< what the server has refused last
  std::atomic<std::int64_t> most_bytes_ = 0;
  natsConnection* connection_ = nullptr;
};

/// Throws Error(resource) when the connection is closed.
ContextHandle context_of(const Connection& connection);

// The ends of a stream, which has the subject.

/// Reads messages by their numbers.
std::unique_ptr<Reader> make_reader(std::shared_ptr<const Connection> connection,
                                    const std::string& stream, const std::string& subject);

/// Messages of a durable pull consumer. Makes the consumer, or takes the one of that name.
std::unique_ptr<Source> make_source(std::shared_ptr<const Connection> connection,
                                    const std::string& stream, const SourceOptions& options);

/// Publishes and waits for acknowledgments, at the end too. `most_bytes`: of a message, as the
/// stream has it; below 1: as many as the server takes.
std::unique_ptr<Sink> make_sink(std::shared_ptr<const Connection> connection,
                                std::int64_t most_bytes);

}  // namespace fast::stream
