// The publications of one worker of another host on their way into its mirror.
#pragma once

#include <vector>

#include "exchange/remote/messages/frame.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

/// The states and their transitions:
///
///     awaiting_frame ── a payload in parts: begin_parts ──► receiving_parts
///       │    ▲                                                  │
///       │    └───────────────────── all parts are here ─────────┘
///       └── the end of the stream ──► ended
class Incoming {
 public:
  Incoming(RemoteEdges& edges, const mpi::Messages& messages, int publisher);
  /// True when something has moved.
  bool advance();
  bool closed() const { return state_ == State::ended; }

 private:
  enum class State { awaiting_frame, receiving_parts, ended };

  void await_frame();
  bool end_frame();
  void apply(const Frame& frame);
  void publish_inline();
  void begin_parts();
  bool continue_parts();

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int publisher_;
  MirrorWriter mirror_;
  std::vector<std::byte> message_;  ///< a frame and its payload, if that travels inline
  mpi::Request request_;            ///< of the message
  struct Part {
    mpi::Request request;
    std::size_t end;  ///< in the message
  };
  std::vector<Part> parts_;
  std::size_t parts_here_ = 0;  ///< they arrive in their order
  Frame publication_;           ///< the latest one
  State state_ = State::awaiting_frame;
};

}  // namespace fast::exchange
