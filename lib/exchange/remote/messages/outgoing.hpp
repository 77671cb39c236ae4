// This worker's publications on their way to one reader on another host: which one is next, and how
// far it is.
#pragma once

#include <optional>

#include "exchange/remote/messages/sending.hpp"
#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// A publication in this worker's own slots.
struct OwnPublication {
  std::uint64_t sequence = 0;
  std::int64_t first = 0, until = 0;  ///< rounds
};

/// Which publication to send next.
class SendPlan {
 public:
  SendPlan(const RemoteEdges& edges, int reader) : edges_(edges), reader_(reader) {}

  /// At staleness 0, the oldest publication that the reader still needs; else the newest one that
  /// has not been sent.
  std::optional<OwnPublication> next() const;
  /// The last round that the publication sent last is for, if the reader has to know it.
  std::optional<std::int64_t> extension() const;

  void sent(const OwnPublication& publication) { sent_ = publication; }
  void extended(std::int64_t until) { sent_.until = until; }

 private:
  std::uint64_t newest() const;
  bool reader_has_finished() const;
  bool is_due(std::int64_t from, std::int64_t to) const;
  bool reader_is_behind(std::int64_t round) const;
  OwnPublication load(std::uint64_t sequence) const;
  std::optional<OwnPublication> if_intact(const OwnPublication& publication) const;

  const RemoteEdges& edges_;
  int reader_;
  OwnPublication sent_;  ///< sequence 0: none
};

/// Sends them.
///
/// The states and their transitions:
///
///     ready ── begin_payload ──► sending ── all parts started: send_completion ──► draining
///       │ ▲                                                                           │
///       │ └───────────────────────────────────────────── all parts done: drain ───────┘
///       └── closing: send_end ──► ended
///
/// A payload that travels inline, an extension and a status are one frame: the state stays ready.
class Outgoing {
 public:
  Outgoing(RemoteEdges& edges, const mpi::Messages& messages, int reader);
  /// True when something has moved.
  bool advance();
  void close() { closing_ = true; }
  bool closed() { return state_ == State::ended && frames_.done(); }

 private:
  enum class State { ready, sending, draining, ended };

  // The transitions; true when something has moved.
  bool send_next();
  bool send_extension();
  bool send_publication(const OwnPublication& publication);
  bool send_inline(const Frame& frame, SendBuffer& buffer);
  void begin_payload(const Frame& frame, std::shared_ptr<SendBuffer> buffer);
  bool send_parts();
  void send_completion();
  bool drain();
  bool send_status();
  void send_end();

  Frame frame(Frame::Kind kind) const;

  RemoteEdges& edges_;
  SendPlan plan_;
  FrameSender frames_;
  PayloadSender payload_;
  State state_ = State::ready;
  OwnPublication publication_;                    ///< being sent
  WorkerStatus status_ = WorkerStatus::starting;  ///< sent last
  bool closing_ = false;
};

}  // namespace fast::exchange
