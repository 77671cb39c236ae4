// Brings publications by messages: the publisher's thread sends them as they are made, the reader's
// receives them into its mirror. Two streams a pair of neighbours, each in order: publications, and
// what counters say, which publications do not hold up.
#pragma once

#include <array>
#include <vector>

#include "exchange/replicator.hpp"
#include "mpi/messages.hpp"

namespace fast::exchange {

/// What precedes or replaces a payload.
struct Frame {
  enum class Kind : std::uint32_t {
    counters,     ///< nothing else
    publication,  ///< payload follows, then a verdict unless all of it is in the frame's message
    verdict,      ///< whether the payload before was whole
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

/// So many bytes of a payload travel with its frame.
inline constexpr std::size_t inline_bytes = std::size_t{16} << 10;
inline constexpr std::size_t message_chunk_bytes = std::size_t{256} << 10;  ///< the rest, in parts

/// This worker's publications on their way to one reader.
class Outgoing {
 public:
  Outgoing(RemoteEdges& edges, const mpi::Messages& messages, int reader);
  bool advance();
  void close() { closing_ = true; }
  bool closed();

 private:
  struct Chunk {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  bool choose();
  bool due(std::int64_t from, std::int64_t to) const;
  bool take(std::uint64_t sequence);
  bool extend();
  bool send_status();
  bool send_chunks();
  bool still_stands() const;
  void copy(std::size_t offset, std::byte* to, std::size_t bytes) const;
  void send(Frame frame, std::size_t payload_bytes = 0);

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int reader_;
  std::vector<std::byte> buffer_;  ///< a frame and the payload's beginning
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::array<Chunk, 4> chunks_;
  std::size_t sent_ = 0;  ///< bytes of the payload
  bool in_payload_ = false;
  std::uint64_t sequence_ = 0;  ///< publication under way, or the last sent whole
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
  void take_frame(const Frame& frame);
  void begin(const Frame& frame);
  bool receive_chunks();

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int publisher_;
  MirrorWriter mirror_;
  std::vector<std::byte> buffer_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<MPI_Request> chunks_;
  std::size_t asked_ = 0;  ///< bytes of the payload that receives have been posted for
  bool in_payload_ = false;
  Frame publication_;
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

/// A neighbour reached by messages. Once either end closes, the other does, too, when all that it
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
