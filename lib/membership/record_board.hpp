// What the ranks of a group say of themselves: words that only grow.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace fast::membership {

/// A request or a growth (1, 2, ...) or an epoch, and a round.
struct NumberedRound {
  std::uint64_t number = 0;
  std::int64_t round = 0;
  bool operator==(const NumberedRound&) const = default;
};

/// As a word that grows with the number, and then with the round. A round has 40 bits.
std::uint64_t word_of(NumberedRound value);
NumberedRound numbered_round_in(std::uint64_t word);

/// One record of words for each rank, zero at first. The ranks of a host share it. A rank of
/// another host has a copy. Every word only grows, so the larger of two copies is the newer one.
///
/// A rank raises the words of its own record, and reads all records. The words before `common` are
/// its own. The word at `common` is everybody's: any rank raises it in any record.
///
/// Words are sequentially consistent. Copies of a record are read from its first word to its last
/// and taken over from the last to the first. A word that says that others are there (a settled
/// number) therefore stands before those others (the shares). The common words are read after all
/// others and are taken over before them. What a rank has said of others is thus known wherever a
/// later word of that rank is known.
class RecordBoard {
 public:
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free);

  struct Format {
    std::size_t words = 0;   ///< of a record
    std::size_t common = 0;  ///< the place of the word that everybody raises
    std::size_t size_bytes() const { return words * sizeof(Word); }
  };

  /// `parts`: by rank, memory for a record each. It outlives this board and its copies.
  RecordBoard(std::span<std::byte* const> parts, int rank, const Format& format);

  int size() const { return static_cast<int>(records_.size()); }
  int rank() const { return rank_; }
  std::size_t words_of_all() const { return records_.size() * format_.words; }

  std::uint64_t read(int rank, std::size_t word) const {
    return at(rank, word).load(std::memory_order_seq_cst);
  }
  std::uint64_t own(std::size_t word) const { return read(rank_, word); }
  /// The largest of all ranks.
  std::uint64_t newest(std::size_t word) const;

  /// A word that is as large stays as it is.
  void raise(std::size_t word, std::uint64_t value) const { raise(at(rank_, word), value); }
  void raise_common(int rank) const { raise(at(rank, format_.common), 1); }
  /// Adds 1 to a word that the caller alone raises.
  void count(std::size_t word) const { at(rank_, word).fetch_add(1, std::memory_order_seq_cst); }

  /// All records: words_of_all() words.
  void copy_to(std::span<std::uint64_t> words) const;
  /// Another rank's copies. Of ranks that are `here`, only the common words count.
  void take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here) const;

 private:
  Word& at(int rank, std::size_t word) const {
    return records_[static_cast<std::size_t>(rank)][word];
  }
  static void raise(Word& word, std::uint64_t value);

  std::vector<Word*> records_;
  int rank_;
  Format format_;
};

}  // namespace fast::membership
