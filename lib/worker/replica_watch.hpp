// How the ranks of a replica of several ranks end together, and how all replicas end by an error.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/group.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "exchange/board.hpp"
#include "exchange/group_impl.hpp"
#include "membership/periodic_thread.hpp"

namespace fast::worker {

/// The place of a rank among replicas of `shards` consecutive ranks each.
struct PlaceInReplicas {
  int index = 0, count = 1;  ///< of the replica, and how many there are
  int shard = 0, shards = 1;

  int rank_of(int other) const { return index * shards + other; }
};

/// Throws Error(argument) unless `ranks` ranks make replicas of `shards` ranks each.
PlaceInReplicas place_in_replicas(int rank, int ranks, int shards);

/// Looks ten times a second for what the other ranks do.
///
/// A rank of this replica is lost, or gives no sign of life for long: this process ends with the
/// status of a process that was killed, so that fastrun counts it as lost, too, and the other
/// replicas go on. Any other rank has failed
/// with an error: so does this one. If it is in a call that does not end, its process ends.
class ReplicaWatch final : public exchange::PartOfReplica {
 public:
  /// What is done on any thread before the process ends.
  struct Ends {
    /// The replica ends. Says why if the line is not empty: one rank gets it.
    std::function<void(const std::string& line)> lost;
    /// Another rank has failed and reports it. Ends this process with an error of its own.
    std::function<void()> failed;
  };
  static constexpr int lost_status = 137;

  /// Collective over `all`. `inside` are the ranks of this replica.
  ReplicaWatch(const Group& all, Group inside, const PlaceInReplicas& place, Ends ends,
               Seconds deadline = Seconds(300));
  ~ReplicaWatch() override { stop(); }

  /// From now on other ranks do not matter.
  void stop() noexcept;

  /// Why a call of this rank has failed.
  enum class Cause {
    own,      ///< something of its own
    unclear,  ///< perhaps that another rank has ended, which is known soon
    another,  ///< that: the other rank reports it
  };

  void set_patience(std::optional<Seconds> suspect_after) override;
  bool note_failure() noexcept override;
  bool note_failure(Cause cause) noexcept;
  void note_rejoin() override;
  /// While it is true, nothing is noted: all ranks agree on what fails on any of them.
  void set_agreeing(bool agrees) { agrees_ = agrees; }
  bool has_failed_elsewhere() const { return is_elsewhere(follows); }

 private:
  /// What ranks write on the board: that they have told why their replica ends, or that they end
  /// by another rank's failure, or by their own.
  enum Word : std::uint64_t { told = 1, follows, failed };

  bool tick(Seconds elapsed);
  bool is_elsewhere(Word least) const;
  bool follows_another(Cause cause);
  /// Writes the word. False if a rank from `first` on, below this one, has written it, too.
  bool is_lowest(Word word, int first);
  void leave_if_broken();
  void leave_if_silent();
  bool is_told() const;
  [[noreturn]] void leave(const std::string& why);

  Group inside_;
  PlaceInReplicas place_;
  Ends ends_;
  bool has_several_hosts_;  ///< this replica
  exchange::Board board_;
  std::recursive_mutex mutex_;     ///< whoever ends the process has it for good
  std::optional<bool> reports_;    ///< of a rank that has failed
  std::atomic<Seconds> patience_;  ///< with a rank of this replica that gives no sign of life
  bool agrees_ = false;            ///< of the program's thread alone
  Seconds since_failure_{0};       ///< of another rank
  std::unique_ptr<membership::PeriodicThread> thread_;  ///< declared last
};

}  // namespace fast::worker
