// How published values get from a worker to those that read them. An exchange moves bytes; what
// they mean is the algorithm's affair. One interface for threads, shared windows and remote
// windows.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/log.hpp>
#include <fast/exchange/peers.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stop_token>
#include <vector>

namespace fast {

/// What a worker publishes: `vectors` of `vector_bytes` each and scalars, its message to the
/// neighbors; and, where mean models are not made of vector 0, its weights beside them, which
/// neighbors do not read.
struct PayloadShape {
  std::size_t vector_bytes = 0;
  int vectors = 1;
  int scalars = 0;
  std::size_t weights_bytes = 0;  ///< 0: vector 0 is the weights

  std::size_t stride_bytes() const;   ///< from one vector to the next
  std::size_t vectors_bytes() const;  ///< from the first's beginning to the last's end
  std::size_t payload_bytes() const;  ///< what travels along an edge in a round
};

/// A payload in a slot. Not owning; valid as the call that gave it says.
template <class Byte, class Scalar>
struct BasicPayload {
  Byte* data = nullptr;
  Scalar* scalars = nullptr;
  std::size_t stride_bytes = 0;
  Byte* weights = nullptr;  ///< null: none beside the vectors
  Byte* vector(int k) const { return data + static_cast<std::size_t>(k) * stride_bytes; }
};
using Payload = BasicPayload<const std::byte, const double>;
using MutablePayload = BasicPayload<std::byte, double>;

/// Whom this worker reads in a round and who reads it: sorted ranks.
struct RoundEdges {
  std::vector<int> sources;
  std::vector<int> destinations;
};
/// The edges of any round ≥ 0; must give the same answer to all workers and be quick.
using EdgePlan = std::function<RoundEdges(std::int64_t round)>;

inline constexpr std::int64_t unbounded_staleness = std::numeric_limits<std::int64_t>::max();

/// How workers of different hosts reach each other: by reading over there (MPI_Rget), by messages
/// (MPI_Isend), or by what start-up's measurement finds faster, pair by pair. At staleness above 0
/// `measured` means messages: a slot may be written anew before a slow link has brought it over.
enum class RemotePathChoice { measured, pull, two_sided };

/// How an exchange waits, and what it sends to other hosts by.
struct ExchangeOptions {
  std::int64_t staleness =
      0;  ///< 0: exactly the same round; k: not older than k rounds; unbounded: never waits
  Seconds deadline{300};     ///< longest wait without progress of any worker, peers being alive
  Seconds suspect_after{5};  ///< no sign of life for so long makes a suspect
  RemotePathChoice remote_path = RemotePathChoice::measured;
  double remote_bytes_per_s = 0;  ///< a worker's cap on payloads to other hosts; 0: none
  std::stop_token stop{};         ///< ends waits with Error(peer_failed)
  /// Rises with progress that other links see; waits go on while it does. Empty: none do.
  std::function<std::uint64_t()> activity{};
  LogSink log;
};

/// One neighbor's payload for a round.
struct Arrival {
  enum class State {
    present,   ///< `payload` may be read until complete(); call stands() after reading
    suspect,   ///< shows no sign of life; left out
    finished,  ///< has left training; left out
    missed,    ///< has gone on without this worker (staleness 0): its payload of the round is gone
    torn,      ///< set by the reader: changed while it was read, thrice; left out
  };
  int worker = 0;
  State state = State::present;
  Payload payload;
  std::int64_t round = 0;      ///< the newest round that the payload is known to be for
  std::int64_t first = 0;      ///< the first one: the slot's mark as long as it holds the payload
  std::uint64_t sequence = 0;  ///< the publication read
  bool fresh = false;          ///< not fetched before
  std::uint64_t arriving = 0;  ///< of fetch_early(): on its way still; 0: whole
};

/// For Exchange::await: all of a payload.
inline constexpr std::size_t whole_payload = std::numeric_limits<std::size_t>::max();

/// Publishes this worker's payloads and fetches its neighbors'. Used by one thread. No call is
/// collective. Every wait ends: Error(deadline) names rank, peer, operation, round and time;
/// Error(peer_failed) when the peer waited for has failed.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// The memory of the next publication, its content undefined. Blocks while a reader still needs
  /// what it held (staleness 0 only). The same until publish() is called.
  virtual MutablePayload acquire() = 0;

  /// Makes the acquired payload visible as this worker's of `round`; `with_weights`: those beside
  /// the vectors have been written, too. Published payloads do not change. When nothing was
  /// acquired, the latest publication is this worker's of `round` too. May return before others see
  /// it; what goes wrong then is thrown by a later call.
  virtual void publish(std::int64_t round, bool with_weights = false) = 0;

  /// Others see what has been published when this returns.
  virtual void flush() {}

  /// The latest publication of this worker. Valid until the next but one publish().
  virtual Payload published() const = 0;

  /// The next fetch() will be that round's, after work that has nothing to do with the exchange
  /// (staleness 0 only): what can be done of it beside that work is begun, its waits among it.
  virtual void begin_fetch(std::int64_t /*round*/) {}

  /// The payloads of the round's sources, in their order. Blocks until each is there, dropped or
  /// overdue.
  virtual std::vector<Arrival> fetch(std::int64_t round) = 0;

  /// The same, but payloads that have begun to come from another host may be given (staleness 0
  /// only), of which nothing may be read before await() says so.
  virtual std::vector<Arrival> fetch_early(std::int64_t round) { return fetch(round); }

  /// Blocks until so many bytes from the payload's vector 0 on are there, or all of it, after which
  /// it is like any other. False when they will not come as that payload: fetch again.
  virtual bool await(Arrival& /*arrival*/, std::size_t /*bytes*/) { return true; }

  /// What is known of a neighbor without waiting: present, suspect or finished. At staleness 0 a
  /// neighbor that has completed the round is present. Throws as fetch().
  virtual Arrival::State look(int /*neighbor*/, std::int64_t /*round*/) {
    return Arrival::State::present;
  }

  /// True when all that was read of `arrival` up to now is whole and unchanged.
  virtual bool stands(const Arrival& arrival) const = 0;

  /// This worker has done with all it fetched; `rounds` are finished.
  virtual void complete(std::int64_t rounds) = 0;
};

}  // namespace fast
