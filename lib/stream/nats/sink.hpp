// Publishes to a stream and waits for its acknowledgments.
#pragma once

#include <memory>
#include <unordered_map>

#include "stream/nats/connection.hpp"

namespace fast::stream {

class NatsSink final : public Sink {
 public:
  /// `most_bytes`: of a message, as the stream has it; below 1: as many as the server takes.
  NatsSink(std::shared_ptr<const Connection> connection, std::int64_t most_bytes);
  /// Waits until no acknowledgment can come any more.
  ~NatsSink() override;

  std::vector<Stored> publish(std::span<const Outgoing> messages) override;
  void interrupt() override;
  std::size_t most_bytes() const override;

 private:
  static void on_answer(jsCtx*, natsMsg* message, jsPubAck* good, jsPubAckErr* bad, void* self);
  void answered(natsMsg* message, const jsPubAck* good, const jsPubAckErr* bad);
  void send(const Outgoing& message, std::size_t index);
  bool is_done() const;

  std::shared_ptr<const Connection> connection_;
  const std::int64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<natsMsg*, std::size_t> sent_;  ///< without an answer, by their index
  std::vector<std::optional<Stored>> stored_;
  std::string refusal_;
  bool interrupted_ = false;
  ContextHandle context_;
};

}  // namespace fast::stream
