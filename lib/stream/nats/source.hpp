// Messages of a durable pull consumer.
#pragma once

#include <memory>

#include "stream/nats/connection.hpp"

namespace fast::stream {

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
