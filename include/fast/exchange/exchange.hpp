// Moves published payloads from a worker to its readers: one interface for threads, shared windows
// and other hosts. An exchange moves bytes. The algorithm defines what they mean.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/observer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace fast {

/// Bytes of a payload's vectors, from the beginning of vector 0: [begin, end), or up to their end.
struct PayloadPart {
  std::size_t begin = 0, end = std::numeric_limits<std::size_t>::max();
  /// The same within so many bytes.
  PayloadPart within(std::size_t bytes) const {
    return {std::min(begin, bytes), std::min(end, bytes)};
  }
  std::size_t size_bytes() const { return end - begin; }
  bool operator==(const PayloadPart&) const = default;
};

/// What a worker publishes: a message of `vectors` with `vector_bytes` each and of scalars; and its
/// weights beside the message, if vector 0 is not the weights. Neighbors read the message alone;
/// mean models are made of the weights.
struct PayloadShape {
  std::size_t vector_bytes = 0;
  int vectors = 1;
  int scalars = 0;
  std::size_t weights_bytes = 0;  ///< 0: vector 0 is the weights

  std::size_t stride_bytes() const;   ///< from one vector to the next
  std::size_t vectors_bytes() const;  ///< from the first's beginning to the last's end
  /// Sent in a round along an edge that carries that part of the vectors; the default: all.
  std::size_t payload_bytes(const PayloadPart& part = {}) const {
    const std::size_t all = static_cast<std::size_t>(vectors) * vector_bytes;
    return (part == PayloadPart() ? all : part.within(vectors_bytes()).size_bytes()) +
           static_cast<std::size_t>(scalars) * sizeof(double);
  }
};

/// A payload in a slot. Not owning; the call that returned it says how long it is valid.
template <class Byte, class Scalar>
struct BasicPayload {
  Byte* data = nullptr;
  Scalar* scalars = nullptr;
  std::size_t stride_bytes = 0;
  Byte* weights = nullptr;  ///< null: no weights beside the message
  Byte* vector(int k) const { return data + static_cast<std::size_t>(k) * stride_bytes; }
};
using Payload = BasicPayload<const std::byte, const double>;
using MutablePayload = BasicPayload<std::byte, double>;

/// The workers that this one reads in a round, and those that read it: sorted ranks.
struct RoundEdges {
  std::vector<int> sources;
  std::vector<int> destinations;
  /// All that these edges carry beside scalars. Both ends of an edge have the same part. The rest
  /// of a payload that has come from another host is undefined.
  PayloadPart part{};
  /// In place of it, where edges carry different parts: one for each source and destination.
  std::vector<PayloadPart> source_parts{}, destination_parts{};

  PayloadPart part_from(int source) const { return part_of(source, sources, source_parts); }
  PayloadPart part_to(int reader) const { return part_of(reader, destinations, destination_parts); }

 private:
  /// All of the payload for workers to which no edge leads.
  PayloadPart part_of(int worker, const std::vector<int>& workers,
                      const std::vector<PayloadPart>& parts) const {
    const auto found = std::find(workers.begin(), workers.end(), worker);
    if (found == workers.end()) return {};
    return parts.empty() ? part : parts[static_cast<std::size_t>(found - workers.begin())];
  }
};
/// The edges of any round ≥ 0. Must be fast and return the same edges on every worker.
using EdgePlan = std::function<RoundEdges(std::int64_t round)>;

inline constexpr std::int64_t unbounded_staleness = std::numeric_limits<std::int64_t>::max();

/// How workers of different hosts reach each other: by reads (MPI_Rget), by messages (MPI_Isend),
/// or by the faster of both, which is measured at start-up for each pair. At staleness above 0
/// `measured` means messages: a slot may be written again before a slow link has sent it.
enum class RemotePathChoice { measured, pull, two_sided };

/// How an exchange waits, and how it reaches other hosts.
struct ExchangeOptions {
  /// 0: exactly the same round; k: at most k rounds old; unbounded: never waits.
  std::int64_t staleness = 0;
  /// At staleness 0, how many of a worker's latest payloads stay as they are: 3, or 2 where they
  /// are apart from the slots, as in the memory of a device.
  int payloads = 3;
  Seconds deadline{300};  ///< longest wait without progress of any worker
  /// A worker without a sign of life for this time is a suspect. None: automatic, from the measured
  /// gaps between each worker's signs of life; 1 s to 10 s, and suspect_after_at_first before that.
  std::optional<Seconds> suspect_after;
  RemotePathChoice remote_path = RemotePathChoice::measured;
  double remote_bytes_per_s = 0;  ///< a worker's limit on payloads to other hosts; 0: none
  /// Whether another rank has taken that one's place for good: waits for it end as for a suspect.
  /// May be empty.
  std::function<bool(int rank)> is_replaced{};
  /// Whether that worker is known to have died. If set, waits do not end for a suspect, only for a
  /// worker that has died. May be empty.
  std::function<bool(int rank)> has_ended{};
  std::stop_token stop{};  ///< ends waits with Error(peer_failed)
  /// The number by which messages and events name that rank. Empty: its rank.
  std::function<int(int rank)> number_of{};
  LogSink log;
  std::shared_ptr<Observer> observer{};  ///< of waits, suspects and returns; may be null
};

/// One neighbor's payload for a round.
struct Arrival {
  enum class State {
    present,   ///< `payload` may be read until complete(); call is_intact() after reading
    suspect,   ///< shows no sign of life; left out
    finished,  ///< has left training; left out
    missed,    ///< continued without this worker: its payload is gone or does not count
    torn,      ///< changed during three reads; left out. At staleness 0 of a device: the payloads
               ///< of the round before did, so that this worker has been left behind
  };
  int worker = 0;
  int rank = 0;  ///< set where workers are seats: the rank whose payload this is
  State state = State::present;
  Payload payload;
  std::int64_t round = 0;      ///< the newest round that the payload is known to be for
  std::int64_t first = 0;      ///< the first one: the slot's mark while it holds the payload
  std::uint64_t sequence = 0;  ///< the publication read
  bool fresh = false;          ///< not fetched before
  std::uint64_t arriving = 0;  ///< of fetch_early(): still arriving; 0: whole
};

inline bool is_present(const Arrival& arrival) { return arrival.state == Arrival::State::present; }

/// The argument of Exchange::await for all of a payload.
inline constexpr std::size_t whole_payload = std::numeric_limits<std::size_t>::max();

/// Publishes this worker's payloads and fetches those of its neighbors. Used by one thread, but for
/// is_intact(). No call is collective. Every wait ends: with Error(deadline), which names rank,
/// peer, operation, round and time, or with Error(peer_failed) when the peer has failed.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// The memory of the next publication, with undefined content. Blocks while a reader still needs
  /// the old content (staleness 0 only). Returns the same memory until publish() is called.
  virtual MutablePayload acquire() = 0;

  /// Makes the acquired payload visible as this worker's payload of `round`. `with_weights`: the
  /// weights beside the message have been written too. Published payloads do not change. If nothing
  /// was acquired, the latest publication is also for `round`. May return before others see the
  /// payload; a later call throws errors of that time.
  virtual void publish(std::int64_t round, bool with_weights = false) = 0;

  /// The weights of the coming publication are for readers after this worker's end: they go to the
  /// host, even if messages stay in the memory of a device.
  virtual void keep_weights() {}

  /// Blocks until others see all publications.
  virtual void flush() {}

  /// The latest publication of this worker. Valid until the next but one acquire().
  virtual Payload published() const = 0;
  /// The number of that publication, from 1 on; 0: none yet.
  virtual std::uint64_t sequence() const = 0;

  /// Announces the next fetch() (staleness 0 only), which will follow other work of the caller.
  /// Parts of the fetch, waits among them, may then run beside that work.
  virtual void begin_fetch(std::int64_t /*round*/) {}

  /// The payloads of the round's sources, in their order. Blocks until each is there or left out.
  virtual std::vector<Arrival> fetch(std::int64_t round) = 0;

  /// Fetches as fetch() does, but a payload may still be arriving from another host (staleness 0
  /// only). Call await() before reading it.
  virtual std::vector<Arrival> fetch_early(std::int64_t round) { return fetch(round); }

  /// Blocks until the first `bytes` from the payload's vector 0 are there, or the whole payload.
  /// False if that payload will not arrive: fetch again.
  virtual bool await(Arrival& /*arrival*/, std::size_t /*bytes*/) { return true; }

  /// The state of a neighbor without waiting: present, suspect or finished. At staleness 0 a
  /// neighbor that has completed the round with this worker is present. Throws as fetch().
  virtual Arrival::State look(int /*neighbor*/, std::int64_t /*round*/) {
    return Arrival::State::present;
  }

  /// True when all that was read of `arrival` so far belongs to that publication.
  virtual bool is_intact(const Arrival& arrival) const = 0;

  /// This worker does not read the fetched payloads any more; `rounds` rounds are finished.
  virtual void complete(std::int64_t rounds) = 0;
};

}  // namespace fast
