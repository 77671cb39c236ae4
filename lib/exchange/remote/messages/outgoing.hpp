// This worker's publications on their way to one reader on another host.
#pragma once

#include "exchange/remote/messages/send_plan.hpp"
#include "exchange/remote/messages/sending.hpp"

namespace fast::exchange {

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
  int reader_;
  SendPlan plan_;
  FrameSender frames_;
  PayloadSender payload_;
  State state_ = State::ready;
  OwnPublication publication_;                    ///< being sent
  WorkerStatus status_ = WorkerStatus::starting;  ///< sent last
  bool closing_ = false;
};

}  // namespace fast::exchange
