// Answers the messages of a stream with a model, each once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "fast_serve/service.hpp"
#include "stream/broker.hpp"

namespace fast::serve {

struct ScoringOptions {
  std::string model;
  std::string answers;     ///< subject
  std::string consumer;    ///< part of the answers' identities
  std::size_t batch = 64;  ///< messages in work at a time
  /// Identities of answers that an earlier scorer has published. A message that has one of them is
  /// acknowledged only. The stream itself knows identities for a while.
  std::set<std::string> published{};
  /// After which the stream of the answers may no longer know the identity of an answer that
  /// another scorer has published meanwhile. Messages that are held for longer, as by a program
  /// that was stopped, are not answered: the server delivers them again. 0: no limit.
  std::chrono::milliseconds known_for{0};
};

/// The number of the message whose answer has this identity. Empty: another consumer's, or none.
std::optional<std::uint64_t> answered_message(std::string_view identity, std::string_view consumer);

/// A message is a prediction request: its body, and the headers Content-Type (JSON without it),
/// X-Tensor-Shape, X-Tensor-Type, X-Tensor-Output, X-Normalized and X-Model-Version. The answer has
/// the reply's body, its headers, X-Status and X-Answer-To: the number of the message in its
/// stream. A message is acknowledged once the stream has stored its answer, whose identity is that
/// of the message: an answer that is computed twice is stored once.
class StreamScorer {
 public:
  /// Told once, by the scorer's thread, why it has ended by itself.
  using OnFailure = std::function<void(const std::string& why)>;

  StreamScorer(Service& service, stream::Source& source, stream::Sink& sink,
               ScoringOptions options);
  /// As end(0).
  ~StreamScorer();

  void start(OnFailure on_failure);
  /// Takes no more messages, and answers those that it holds. Those that are not answered within
  /// `patience` are left to the next scorer. Returns whether all were answered.
  bool end(std::chrono::milliseconds patience);

  /// One turn of what start() repeats: fetches, answers and acknowledges. Returns the number of
  /// messages that were fetched.
  std::size_t turn(std::chrono::milliseconds wait);

 private:
  void run(const std::stop_token& stop);
  Request request_of(const stream::Message& message) const;
  std::string identity_of(const stream::Message& message) const;
  bool is_answered(const stream::Message& message);
  stream::Outgoing answer_of(const stream::Message& message, Reply reply) const;
  Reply settled(const Request& request, const std::function<Reply()>& first);

  Service& service_;
  stream::Source& source_;
  stream::Sink& sink_;
  const ScoringOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = true, gives_up_ = false, left_some_ = false;
  std::jthread thread_;
};

}  // namespace fast::serve
