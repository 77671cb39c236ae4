// What workers know of each other besides payloads, and how they ask for it.
#pragma once

#include <fast/core/deadline.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include "membership/peer_state.hpp"

namespace fast {

/// What snapshot() has copied.
enum class Snapshot {
  none,     ///< nothing: no publication yet, or it changed during each attempt
  message,  ///< vector 0 (see PayloadShape)
  weights,  ///< the weights beside the message
};

/// Which bytes snapshot() copies.
struct Piece {
  std::size_t offset = 0;      ///< in the weights; from there on as many bytes as the room has
  std::uint64_t sequence = 0;  ///< of that publication alone; 0: the newest, whose number is set
  std::int64_t round = -1;     ///< set: the first one that the publication is for
};

/// What a worker shows of a reduction over the final weights.
struct Reduced {
  enum class Stage : std::uint32_t {
    none,
    part,   ///< the worker's own part of the mean is in its memory
    known,  ///< it also knows the figures of all parts
    whole,  ///< the whole mean is in its memory
  };
  struct Figures {
    double mean_square = 0;    ///< Σ_e mean_i (x_ie - x̄_e)², over parameters
    std::int64_t workers = 0;  ///< whose weights could be read
  };
  Stage stage = Stage::none;
  Figures part, all;
};

/// Results that workers leave in their memory for each other after their last publication. Like
/// those of Peers, no call is collective, and calls about workers of other hosts may block.
class Results {
 public:
  virtual ~Results() = default;
  /// This worker's memory for a result, of the weights' size, or of vector 0 if no weights are
  /// beside the message. It is used after the last publication, when this worker's exchange is not
  /// used any more.
  virtual std::span<std::byte> room() = 0;
  /// Gives the system the memory of all publications but the last one. It is called at the same
  /// time.
  virtual void trim() = 0;
  /// Shows that, and what is in room() so far.
  virtual void show(const Reduced& reduced) = 0;
  virtual Reduced shown(int worker) const = 0;
  /// Copies bytes of another worker's room. False if they could not be read.
  virtual bool read(int worker, std::size_t offset, std::span<std::byte> to) const = 0;
};

/// No call is collective. Only peer() and snapshot() may block, for workers of other hosts.
class Peers {
 public:
  virtual ~Peers() = default;

  virtual PeerState peer(int worker) const = 0;

  /// True when the worker has shown no sign of life for longer than suspect_after(), counted in
  /// this worker's own heartbeats. For a worker of another host that is no neighbor, only peer()
  /// brings signs of life.
  virtual bool is_suspect(int worker) const = 0;
  /// The longest silence of that worker that makes no suspect now: ExchangeOptions::suspect_after,
  /// or what has been measured.
  virtual Seconds suspect_after(int worker) const = 0;

  /// Reports progress between publications and rounds: no wait of any worker expires.
  virtual void note_progress() = 0;

  /// Sets this worker's status and wakes those that wait for it; one that has ended stays so. For
  /// `failed`, returns true if this worker is the first of the run to fail: the one that reports.
  virtual bool announce(WorkerStatus status) = 0;

  /// Copies the weights of another worker's newest publication: those beside the message, or else
  /// vector 0. No more than what fits into `room`. None, if `piece` names a publication that
  /// another one has replaced.
  virtual Snapshot snapshot(int worker, std::span<std::byte> room, Piece& piece) const = 0;
  Snapshot snapshot(int worker, std::span<std::byte> room) const {
    Piece all;
    return snapshot(worker, room, all);
  }

  /// Where this process reads the bytes of that piece itself, which snapshot() has found before
  /// (its sequence and round are set). They may be torn, and count if is_intact() afterwards. Null:
  /// only snapshot() reads them.
  virtual const std::byte* in_place(int /*worker*/, Snapshot /*found*/,
                                    const Piece& /*piece*/) const {
    return nullptr;
  }
  virtual bool is_intact(int /*worker*/, const Piece& /*piece*/) const { return false; }

  /// Null: there are none.
  virtual Results* results() { return nullptr; }
};

}  // namespace fast
