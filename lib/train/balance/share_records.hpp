// What workers know of each other's speed, and of the shares on which they have agreed. Each worker
// writes its own record and reads all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "train/balance/shares.hpp"

namespace fast::train {

/// See share_agreement.hpp. A record is some words. All are zero at the beginning, and each of them
/// only grows, so that the larger of two copies is the newer one.
class ShareRecords {
 public:
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free);
  static std::size_t words(int workers) { return first_share + static_cast<std::size_t>(workers); }

  enum class Stage : std::uint64_t { running, left, done };
  /// What a worker says of itself for a division: it begins no epoch after `epoch` before that
  /// division is settled.
  struct Measured {
    std::uint64_t number = 0;
    int epoch = 0;
    double seconds_per_sample = 0;  ///< 0: not known
  };
  /// In force from epoch `epoch` on.
  struct Settled {
    std::uint64_t number = 0;
    int epoch = 0;
  };

  /// `records`: by worker, each of words() words.
  ShareRecords(std::vector<Word*> records, int rank)
      : records_(std::move(records)), rank_(static_cast<std::size_t>(rank)) {}

  std::size_t size() const { return records_.size(); }
  std::size_t rank() const { return rank_; }

  std::uint64_t beat_of(std::size_t worker) const;
  std::uint64_t rounds() const;  ///< of all workers: grows while any of them trains
  Stage stage_of(std::size_t worker) const;
  bool any_is_done() const;
  Measured measured_of(std::size_t worker) const;  ///< number 0: nothing yet, or not all of it
  Settled newest_settled() const;
  /// Of the newest division; empty: nothing is settled, or a newer one just now.
  std::optional<Shares> newest_shares() const;

  // Of this worker's own record.
  void beat();
  void count_round();
  void end(Stage stage);
  void measure(const Measured& measured);
  void settle(Settled settled, const Shares& shares);

  /// All records.
  void copy_to(std::span<std::uint64_t> words) const;
  /// Another worker's copies of the records of workers that are not `here`.
  void take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here);

 private:
  enum Offset : std::size_t {
    beat_at,
    rounds_at,
    stage_at,
    speed_at,
    measured_at,
    settled_at,
    first_share
  };
  Word& own(std::size_t offset) const { return records_[rank_][offset]; }
  std::uint64_t read(std::size_t worker, std::size_t offset) const;

  std::vector<Word*> records_;
  std::size_t rank_;
};

}  // namespace fast::train
