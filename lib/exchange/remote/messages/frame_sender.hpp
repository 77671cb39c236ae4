// Sends frames to one reader, a few at a time.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "exchange/remote/messages/frame.hpp"
#include "mpi/messages.hpp"

namespace fast::exchange {

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

}  // namespace fast::exchange
