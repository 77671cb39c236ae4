// Brings publications by messages: the publisher's thread sends them as they are made, the reader's
// receives them into its mirror. Two streams a pair of neighbors, each in order: publications, and
// what counters say, which publications do not hold up.
#pragma once

#include <array>
#include <vector>

#include "exchange/remote/replicator.hpp"
#include "exchange/remote/send_buffers.hpp"
#include "mpi/messages.hpp"

namespace fast::exchange {

/// What precedes or replaces a payload.
struct Frame {
  enum class Kind : std::uint32_t {
    counters,     ///< nothing else
    publication,  ///< payload follows, in the frame's message or in parts, then a verdict
    verdict,      ///< whether the payload that came in parts is whole
    extension,    ///< the last publication is the rounds' until `until`, too
    status,       ///< the publisher's, once all that is owed has been sent
    goodbye,      ///< nothing more comes on this stream
  };
  Kind kind = Kind::counters;
  WorkerStatus status = WorkerStatus::starting;
  PeerCounters counters;
  std::int64_t first = 0, until = 0;  ///< rounds
  bool stands = false;
};

inline constexpr int publication_tag = 0, counter_tag = 1;

/// A payload up to so long travels with its frame: one message, of which there is a copy more.
inline constexpr std::size_t inline_bytes = std::size_t{1} << 20;
/// Longer ones follow in parts, so many of which are copied at once.
inline constexpr std::size_t part_bytes = std::size_t{1} << 20;
inline constexpr int parts_at_once = 4;
/// Frames wait to be matched, so that none is left in MPI at the end; not each for the one before:
/// the answer waits behind what is under way the other way.
inline constexpr std::size_t frames_under_way = 4;

inline bool travels_inline(const PayloadShape& shape) {
  return SlotBoard::message_bytes(shape) <= inline_bytes;
}
inline std::size_t longest_frame_message(const PayloadShape& shape) {
  return sizeof(Frame) + (travels_inline(shape) ? SlotBoard::message_bytes(shape) : 0);
}

/// This worker's publications on their way to one reader.
class Outgoing {
 public:
  Outgoing(RemoteEdges& edges, const mpi::Messages& messages, int reader);
  bool advance();
  void close() { closing_ = true; }
  bool closed();

 private:
  struct Message {
    std::vector<std::byte> bytes;  ///< a frame, and a payload that travels inline
    MPI_Request request = MPI_REQUEST_NULL;
  };
  bool choose();
  bool due(std::int64_t from, std::int64_t to) const;
  bool leaves_behind(std::int64_t round) const;
  bool take(std::uint64_t sequence);
  bool extend();
  bool send_status();
  bool send_parts();
  void send_verdict();
  bool may_send();
  void send(Frame frame, const std::byte* payload = nullptr, std::size_t payload_bytes = 0);

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int reader_;
  std::array<Message, frames_under_way> messages_under_way_;
  std::size_t next_ = 0;                ///< of these
  std::shared_ptr<SendBuffer> buffer_;  ///< under way in parts
  std::vector<MPI_Request> parts_;
  std::size_t sent_ = 0;  ///< bytes of the buffer
  bool judged_ = false;   ///< its verdict has been sent
  std::int64_t first_ = 0, until_ = 0;
  std::uint64_t newest_sent_ = 0;
  std::int64_t sent_until_ = 0;
  WorkerStatus status_ = WorkerStatus::starting;
  bool closing_ = false, said_goodbye_ = false;
};

/// A worker's publications on their way into the mirror.
class Incoming {
 public:
  Incoming(RemoteEdges& edges, const mpi::Messages& messages, int publisher);
  bool advance();
  bool closed() const { return ended_; }

 private:
  void receive_frame();
  bool follow_parts();
  void take_frame(const Frame& frame);
  void take_payload(const Frame& frame);

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int publisher_;
  MirrorWriter mirror_;
  std::vector<std::byte> buffer_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<MPI_Request> parts_;
  std::size_t parts_here_ = 0;  ///< they come in their order
  Frame publication_;           ///< whose parts are under way
  bool ended_ = false;
};

/// Counters both ways, besides publications.
class CounterStream {
 public:
  CounterStream(RemoteEdges& edges, const mpi::Messages& messages, int worker);
  bool advance();
  void close() { closing_ = true; }
  bool closed();

 private:
  bool send_news();
  void receive();

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int worker_;
  MirrorWriter mirror_;  ///< for the status alone
  Frame sent_, received_;
  MPI_Request sending_ = MPI_REQUEST_NULL, receiving_ = MPI_REQUEST_NULL;
  bool closing_ = false, said_goodbye_ = false, ended_ = false;
};

/// A neighbor reached by messages. Once either end closes, the other does, too, when all that it
/// owes has been sent.
class TwoSided : public Replicator {
 public:
  TwoSided(RemoteEdges& edges, const mpi::Messages& messages, int worker)
      : Replicator(worker),
        outgoing_(edges, messages, worker),
        incoming_(edges, messages, worker),
        counters_(edges, messages, worker) {}

  bool advance() override;
  void close() override;
  bool closed() override;

 private:
  Outgoing outgoing_;
  Incoming incoming_;
  CounterStream counters_;
};

}  // namespace fast::exchange
