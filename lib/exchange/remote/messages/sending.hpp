// How frames and long payloads are sent to a reader on another host.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "exchange/remote/messages/frame.hpp"
#include "exchange/remote/messages/send_buffers.hpp"
#include "exchange/remote/throttle.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

/// Sends frames to one reader, a few at a time.
///
/// Frames are synchronous sends, so that no message is left in MPI at the end. Several are under
/// way at a time, because the answer to each waits behind the data in the other direction.
class FrameSender {
 public:
  static constexpr std::size_t most_under_way = 4;

  FrameSender(RemoteEdges& edges, const mpi::Messages& messages, int reader);

  /// True when another frame may be sent.
  bool is_ready();
  /// Sends the frame with this worker's counters and, after it, the payload.
  void send(Frame frame, std::span<const std::byte> payload = {});
  /// True when no frame is under way.
  bool done();

 private:
  struct Message {
    std::vector<std::byte> bytes;
    mpi::Request request;
  };

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int reader_;
  std::array<Message, most_under_way> under_way_;
  std::size_t next_ = 0;  ///< of these
};

/// Sends one long payload to one reader, in parts.
///
/// With MPICH, parts are sent without waiting for the earlier ones: an answer would wait behind the
/// data in the other direction. With Open MPI, two are under way.
class PayloadSender {
 public:
  PayloadSender(const mpi::Messages& messages, int reader, Throttle& throttle)
      : messages_(messages), reader_(reader), throttle_(throttle) {}

  void begin(std::shared_ptr<SendBuffer> buffer);
  /// Starts a few further sends, as far as the throttle allows. True when it has started any.
  bool start_parts();
  /// True when the sends of all parts have been started.
  bool all_started() const { return started_ == buffer_->part().size_bytes(); }
  /// Removes the sends that are done. True when there were any.
  bool remove_done();
  /// True when no send is under way any more; then releases the buffer.
  bool release();

  const SendBuffer& buffer() const { return *buffer_; }

 private:
  const mpi::Messages& messages_;
  int reader_;
  Throttle& throttle_;
  std::shared_ptr<SendBuffer> buffer_;
  std::vector<mpi::Request> under_way_;
  std::size_t started_ = 0;  ///< bytes
  std::size_t at_ = 0;       ///< up to this byte of the message
};

}  // namespace fast::exchange
