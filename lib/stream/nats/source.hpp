// Messages of a durable pull consumer.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "stream/nats/connection.hpp"

namespace fast::stream {

/// Messages of a stream by their numbers.
class NatsReader final : public Reader {
 public:
  /// `stream` has the subject.
  NatsReader(std::shared_ptr<const Connection> connection, std::string stream, std::string subject);
  ~NatsReader() override;

  std::string identity() override { return std::to_string(created_); }
  Extent extent() override;
  std::vector<Message> read(std::uint64_t begin, std::size_t count) override;
  void interrupt() override { interrupted_ = true; }

 private:
  Extent known();
  /// The server's answer, if there is one. Throws Error(resource) if the stream is another one.
  natsStatus ask_extent(Extent& into);
  natsStatus subscribe(std::uint64_t begin);
  void unsubscribe();
  enum class Fetched { some, none_left, failed };
  /// Adds messages up to `end`.
  Fetched fetch(std::uint64_t end, std::vector<Message>& into);
  Fetched look_for_more(std::uint64_t end);
  bool is_next(natsMsg* message);
  void trouble();

  std::shared_ptr<const Connection> connection_;
  const std::string stream_, subject_;
  ContextHandle context_;
  SubscriptionHandle subscription_;  ///< of a consumer that is at next_; null: none
  std::uint64_t next_ = 0;
  natsStatus last_status_ = NATS_OK;  ///< of the client library's latest call for messages
  std::uint64_t delivered_ = 0;       ///< messages that this consumer has sent
  std::optional<Connection::Clock::time_point> trouble_since_;
  std::atomic<bool> interrupted_ = false;
  std::atomic<std::int64_t> created_ = 0;  ///< when the stream was made, as the server tells it
  std::size_t largest_ = std::size_t{1} << 20;  ///< bytes of a message, not less
  std::mutex mutex_;                            ///< guards what follows
  Extent extent_;
  Connection::Clock::time_point asked_at_{};
  std::optional<Connection::Clock::time_point> hidden_since_;  ///< by a server in reach
};

class NatsSource final : public Source {
 public:
  /// `stream` has the subject. Makes the consumer, or takes the one of that name.
  NatsSource(std::shared_ptr<const Connection> connection, const std::string& stream,
             const SourceOptions& options);

  std::vector<Message> fetch(std::size_t most, std::chrono::milliseconds wait) override;
  void acknowledge(const Message& message) override;
  std::uint64_t acknowledged_before() const override { return acknowledged_before_; }

 private:
  void require_own_subject(const std::string& stream, const std::string& subject);
  void make_consumer(const std::string& stream, const SourceOptions& options);
  void subscribe(const std::string& stream, const SourceOptions& options);
  void trouble(natsStatus status);

  std::shared_ptr<const Connection> connection_;
  const std::string consumer_;
  ContextHandle context_;
  SubscriptionHandle subscription_;
  std::uint64_t acknowledged_before_ = 0;
  std::optional<Connection::Clock::time_point> trouble_since_;
};

}  // namespace fast::stream
