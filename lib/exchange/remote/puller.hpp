// Brings a remote worker's publications by reading over there: MPI_Rget of the header, of the slot
// in chunks, of the header again.
#pragma once

#include <deque>

#include "exchange/remote/replicator.hpp"
#include "mpi/remote_window.hpp"

namespace fast::exchange {

class Puller : public Replicator {
 public:
  Puller(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker);

  bool advance() override;
  void close() override { closing_ = true; }
  bool closed() override;

  /// Only looks: no payload.
  void only_look() { only_look_ = true; }
  /// Copies the newest publication's weights, or vector 0, to `to` instead of the message to the
  /// mirror.
  void copy_to(std::byte* to) { to_ = to; }
  /// Leaves the mirrored status to the replicator that follows this worker.
  void leave_status() { leaves_status_ = true; }
  /// True when a look or copy has ended; and whether what was copied is whole, how long it is and
  /// what it is.
  bool idle() const { return stage_ == Stage::idle; }
  bool stood() const { return stood_; }
  bool is_weights() const { return weights_; }
  std::size_t copied_bytes() const { return copy_bytes_; }

 private:
  enum class Stage { idle, looking, copying, checking };
  /// The header as plain numbers: what MPI_Rget brings.
  struct alignas(WorkerHeader) HeaderImage {
    std::byte bytes[sizeof(WorkerHeader)];
    const WorkerHeader& get() const { return *reinterpret_cast<const WorkerHeader*>(bytes); }
  };

  struct Found {
    std::uint64_t sequence = 0;
    std::int64_t round = 0;  ///< to be told of it
    bool later = false;      ///< than the one looked for
  };
  static Found look_for(const WorkerHeader::Publication& publication, std::int64_t round);

  void look_at(HeaderImage& image, Stage next);
  bool has_come(const HeaderImage& image);
  void take_over_status();
  bool owes() const;
  bool choose();
  bool choose_newest();
  void begin_copy();
  bool copy_some();
  void finish();

  RemoteEdges& edges_;
  const mpi::RemoteWindow& window_;
  MirrorWriter mirror_;
  Stage stage_ = Stage::idle;
  std::byte* to_ = nullptr;  ///< null: the mirror
  bool only_look_ = false;
  bool leaves_status_ = false;
  bool weights_ = false;
  std::byte* target_ = nullptr;  ///< where the copy goes
  std::size_t copy_offset_ = 0;  ///< in the remote part
  std::size_t copy_bytes_ = 0;
  HeaderImage before_, after_;
  MPI_Request header_request_ = MPI_REQUEST_NULL;
  struct Chunk {
    MPI_Request request;
    std::size_t bytes;
    Clock::time_point asked;
  };
  void fit_chunks(Clock::duration took);
  std::deque<Chunk> chunks_;
  std::size_t chunk_bytes_;
  std::size_t requested_ = 0;   ///< bytes of the copy asked for
  std::size_t come_ = 0;        ///< bytes that are here, from the beginning on
  std::uint64_t sequence_ = 0;  ///< remote publication being copied
  std::int64_t round_ = 0;      ///< its round
  std::int64_t first_ = 0;      ///< the first round that its slot showed
  std::int64_t passed_ = -1;    ///< the round that this worker needs and the other has gone past
  std::uint64_t newest_copied_ = 0;
  std::int64_t newest_round_ = std::numeric_limits<std::int64_t>::min();
  std::uint32_t status_ = 0;  ///< as the look before this one saw it
  bool stood_ = false;        ///< outcome of the last copy
  bool moved_ = false;
  bool closing_ = false;
};

}  // namespace fast::exchange
