#include "worker/replica_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/exchange/spares.hpp>
#include <thread>
#include <utility>

#include "core/waits.hpp"
#include "mpi/farewell.hpp"
#include "mpi/launcher.hpp"

namespace fast::worker {
namespace {

constexpr Seconds until_news{2};          ///< in which the reason for a failed call is known
constexpr Seconds failing_together{0.2};  ///< in which several ranks fail by themselves
constexpr Seconds between_hosts{1};       ///< in which a word of another host arrives
constexpr Seconds until_told{3};          ///< in which the lowest rank says why all leave
constexpr Seconds patience_with_call{1};  ///< when another rank has failed
constexpr Seconds longest_silence{10};    ///< as a worker has of itself
constexpr auto between_looks = std::chrono::milliseconds(10);

using Cause = ReplicaWatch::Cause;

Cause cause_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::peer_failed:
      return Cause::another;
    case ErrorKind::deadline:
    case ErrorKind::mpi:
      return Cause::unclear;
    default:
      return Cause::own;
  }
}

/// Of the exception that is being handled, or that passes.
Cause cause_of_exception() {
  const std::exception_ptr current = std::current_exception();
  if (!current) return Cause::unclear;
  try {
    std::rethrow_exception(current);
  } catch (const Error& error) {
    return cause_of(error);
  } catch (...) {  // of another library, by which the ranks of a replica talk, or of the program
    return Cause::unclear;
  }
}

bool has_several(const std::vector<int>& hosts) {
  return std::count(hosts.begin(), hosts.end(), hosts.front()) < std::ssize(hosts);
}

}  // namespace

PlaceInReplicas place_in_replicas(int rank, int ranks, int shards) {
  require(shards >= 1, ErrorKind::argument,
          "Replicas: shards is {}; a whole number, 1 or more, is required", shards);
  const int spares = spares_of_launcher();
  require(spares == 0, ErrorKind::argument,
          "Replicas: fastrun has started {} spares, which take the places of single ranks; start "
          "none",
          spares);
  const int missing = (shards - ranks % shards) % shards;
  require(missing == 0, ErrorKind::argument,
          "Replicas: {} not divisible by {} shards; start a multiple of {}, as by  fastrun -n {}",
          ranks == 1 ? "1 rank is alone, and" : fmt::format("{} ranks are", ranks), shards, shards,
          ranks + missing);
  return {rank / shards, ranks / shards, rank % shards, shards};
}

ReplicaWatch::ReplicaWatch(const Group& all, Group inside, const PlaceInReplicas& place, Ends ends,
                           Seconds deadline)
    : inside_(std::move(inside)),
      place_(place),
      ends_(std::move(ends)),
      has_several_hosts_(has_several(inside_.hosts())),
      board_(all, deadline),
      patience_(longest_silence),
      thread_(std::make_unique<membership::PeriodicThread>(
          [this](Seconds elapsed) { return tick(elapsed); })) {}

void ReplicaWatch::stop() noexcept {
  thread_.reset();
  board_.end_beats();
}

void ReplicaWatch::set_patience(std::optional<Seconds> suspect_after) {
  patience_ = suspect_after.value_or(longest_silence);
}

/// A call of another library waits for a rank that has failed or is lost as long as its own
/// deadline is.
bool ReplicaWatch::tick(Seconds elapsed) {
  board_.beat(elapsed);
  if (!has_failed_elsewhere()) {
    leave_if_broken();
    leave_if_silent();
    return false;
  }
  since_failure_ += elapsed;
  if (since_failure_ < patience_with_call) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || reports_) return false;  // the thread of the program has noticed
  board_.set(follows);
  ends_.failed();
  return false;
}

bool ReplicaWatch::is_elsewhere(Word least) const {
  const std::vector<std::uint64_t> words = board_.words();
  for (int rank = 0; rank < static_cast<int>(words.size()); ++rank) {
    if (rank != place_.rank_of(place_.shard) && words[static_cast<std::size_t>(rank)] >= least)
      return true;
  }
  return false;
}

bool ReplicaWatch::note_failure() noexcept { return agrees_ || note_failure(cause_of_exception()); }

bool ReplicaWatch::note_failure(Cause cause) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!reports_) reports_ = !follows_another(cause) && is_lowest(failed, 0);
  if (!*reports_) mpi::leave_the_report_to_others();
  return *reports_;
}

/// What is due to the end of another rank, is known soon. If it is not, a rank that knows of none
/// that reports the failure reports it.
bool ReplicaWatch::follows_another(Cause cause) {
  const Deadline last(cause == Cause::own ? Seconds(0) : until_news);
  while (!is_elsewhere(failed) && !last.expired()) {
    leave_if_broken();
    std::this_thread::sleep_for(between_looks);
  }
  leave_if_broken();
  if (cause != Cause::another && !is_elsewhere(failed)) return false;
  board_.set(follows);
  return true;
}

bool ReplicaWatch::is_lowest(Word word, int first) {
  board_.set(word);
  std::this_thread::sleep_for(failing_together);
  const std::vector<std::uint64_t> words = board_.words();
  return std::count(words.begin() + first, words.begin() + place_.rank_of(place_.shard), word) == 0;
}

void ReplicaWatch::note_rejoin() {
  constexpr char what[] = "was stopped for long, and its neighbors went on without it";
  require(mpi::launcher_reports_ends(), ErrorKind::deadline,
          "Worker: rank {} {}; a replica of several ranks cannot catch up, so start by fastrun, "
          "under which such a replica ends and the others go on",
          place_.rank_of(place_.shard), what);
  const std::scoped_lock lock(mutex_);
  // The ranks of a replica wait for each other: with one that is stopped, all are left behind.
  const bool tells = !is_told() && is_lowest(told, place_.rank_of(0));
  leave(tells ? fmt::format("a rank of it {}", what) : "");
}

/// The lowest rank that is there says so. Others that left before it would be lost ones, too.
void ReplicaWatch::leave_if_broken() {
  std::vector<int> lost = inside_.died();
  if (lost.empty()) return;
  const std::scoped_lock lock(mutex_);
  if (reports_ || has_failed_elsewhere()) return;
  const auto is_lowest_here = [&] { return living_below(place_.shard, lost) == 0; };
  for (const Deadline last(until_told); !is_lowest_here() && !is_told() && !last.expired();) {
    std::this_thread::sleep_for(between_looks);
    if (has_failed_elsewhere()) return;
    lost = inside_.died();
  }
  // The one that is lost may have told why, on another host.
  const bool may_tell = is_lowest_here();
  const Deadline last(may_tell && has_several_hosts_ ? between_hosts : Seconds(0));
  while (!is_told() && !last.expired()) std::this_thread::sleep_for(between_looks);
  const bool tells = may_tell && !is_told();
  leave(tells ? fmt::format("rank {} was lost", place_.rank_of(lost.front())) : "");
}

/// The others of the replica wait for a rank that is stopped, and other replicas for those. The
/// lowest one that is not silent leaves, and the others follow.
void ReplicaWatch::leave_if_silent() {
  std::vector<int> silent;
  for (int shard = 0; shard < place_.shards; ++shard) {
    if (board_.is_silent(place_.rank_of(shard), patience_.load())) silent.push_back(shard);
  }
  if (silent.empty() || living_below(place_.shard, silent) > 0) return;
  if (!mpi::launcher_reports_ends()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || reports_ || has_failed_elsewhere()) return;
  leave(is_told() ? ""
                  : fmt::format("rank {} has given no sign of life for {:.1f} s",
                                place_.rank_of(silent.front()), patience_.load().count()));
}

/// Whether another rank of this replica has left, and has said why.
bool ReplicaWatch::is_told() const {
  const std::vector<std::uint64_t> words = board_.words();
  const auto first = words.begin() + place_.rank_of(0);
  return std::count(first, first + place_.shards, told) > 0;
}

void ReplicaWatch::leave(const std::string& why) {
  if (!why.empty()) board_.set(told);
  ends_.lost(why.empty() ? ""
                         : fmt::format("replica {} of {} ends: {}; the other replicas go on",
                                       place_.index, place_.count, why));
  mpi::flush_what_is_free();
  if (!why.empty() && has_several_hosts_) std::this_thread::sleep_for(between_hosts);
  _exit(lost_status);
}

}  // namespace fast::worker
