// The ranks of a site on one host: they meet in shared memory, and any of them may be lost.
#pragma once

#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "core/contains.hpp"
#include "core/ended_by_check.hpp"
#include "core/message.hpp"
#include "core/waits.hpp"
#include "exchange/collective/all_reduce.hpp"
#include "sites/packed_model.hpp"
#include "sites/site_ranks.hpp"

namespace fast::sites {

/// In a meeting, each rank brings its weights into its part. The lowest rank that lives waits until
/// all that live have come, acts, and puts the result into its own part. Then it closes the meeting
/// by one word, which names it. If it is lost before, the next one acts again, on what all have
/// brought. If it is lost afterwards, the others still read its part.
class SharedRanks final : public SiteRanks {
 public:
  struct Place {
    int rank = 0;
    Region region;               ///< a part of part_bytes() for each rank
    exchange::ExitReports ends;  ///< of those that are lost
    /// Collective. Makes another region, for handovers.
    std::function<Region(std::size_t bytes)> allocate;
  };

  static std::size_t part_bytes(const ParameterLayout& model) {
    return round_up(sizeof(Record), cache_line_bytes) +
           2 * round_up(model.size_bytes(), cache_line_bytes);
  }

  SharedRanks(Place place, const ParameterLayout& model, Seconds longest)
      : place_(std::move(place)),
        model_(model),
        layout_(packed_layout(model, brought(place_.rank))),
        longest_(longest) {}

  std::int64_t meet(Given given, Take take, const Lead& lead) override {
    ++meeting_;
    model_.gather(brought(place_.rank));
    record(place_.rank).arrived.store(meeting_, std::memory_order_release);
    const Deadline deadline(longest_);
    const auto is_over = [&] { return closed_by() >= 0 || leads(); };
    require(look(is_over, deadline), ErrorKind::deadline,
            "site: rank {} has waited {:g} s for rank {}, which leads it", place_.rank,
            longest_.count(), first_living());
    if (closed_by() < 0) act(given, take, lead);
    leader_ = closed_by();
    ended_ = meeting_;
    const Record& outcome = record(leader_);
    if (outcome.kind >= 0) fail_as(outcome);
    apply(take, leader_);
    return outcome.number;
  }

  bool leads() const override { return first_living() == place_.rank; }

  ParameterLayout weights() override {
    if (weights_.size_bytes() == 0) weights_ = AlignedBuffer(model_.size_bytes());
    return packed_layout(model_, weights_.data());
  }

  void open_handover(std::size_t bytes) override {
    if (ranks() > 1) handovers_ = place_.allocate(bytes);
  }

  void leave_handover(std::span<const std::byte> bytes) override {
    if (handovers_) std::ranges::copy(bytes, handover_of(meeting_).begin());
  }

  std::span<const std::byte> handover() const override {
    if (!handovers_) return {};
    return handover_of(ended_);
  }

  void rebind(const ParameterLayout& model) override { model_ = model; }

 private:
  static constexpr auto look_again = std::chrono::microseconds(200);
  static constexpr std::size_t most_text = 2000;
  /// At the beginning of each part.
  struct Record {
    std::atomic<std::int64_t> arrived;  ///< the latest meeting to which the rank has come
    std::atomic<std::int64_t> closed;   ///< rank 0's: see closed_by()
    std::int64_t number;                ///< of the result
    std::int64_t kind;                  ///< of an error, or -1
    char text[most_text + 1];           ///< its text
  };

  int ranks() const { return static_cast<int>(place_.region.parts.size()); }

  Record& record(int rank) const {
    return *reinterpret_cast<Record*>(place_.region.parts[static_cast<std::size_t>(rank)]);
  }

  std::byte* brought(int rank) const {
    return place_.region.parts[static_cast<std::size_t>(rank)] +
           round_up(sizeof(Record), cache_line_bytes);
  }

  std::byte* result(int rank) const {
    return brought(rank) + round_up(model_.size_bytes(), cache_line_bytes);
  }

  /// What a meeting leaves counts when it has ended: the next one writes to the other place.
  std::span<std::byte> handover_of(std::int64_t meeting) const {
    return {handovers_->parts[static_cast<std::size_t>(meeting % 2)], handovers_->part_bytes};
  }

  int first_living() const {
    const std::vector<int> gone = this->gone();
    int rank = 0;
    while (rank < place_.rank && contains(gone, rank)) ++rank;
    return rank;
  }

  std::vector<int> gone() const { return place_.ends.all ? place_.ends.all() : std::vector<int>(); }

  /// Ends when a rank has failed: that one reports why.
  template <class IsOver>
  bool look(const IsOver& is_over, const Deadline& deadline) const {
    return look_until(
        [&] {
          if (is_over()) return true;
          exchange::stop_for_failure(place_.ends, place_.rank);
          return false;
        },
        deadline, look_again);
  }

  /// The rank that has closed this meeting; -1: none yet.
  int closed_by() const {
    const std::int64_t word = record(0).closed.load(std::memory_order_acquire);
    return word / ranks() == meeting_ ? static_cast<int>(word % ranks()) : -1;
  }

  /// False: another rank has closed it.
  bool close() {
    std::int64_t before = record(0).closed.load(std::memory_order_acquire);
    if (before / ranks() >= meeting_) return false;
    return record(0).closed.compare_exchange_strong(before, meeting_ * ranks() + place_.rank,
                                                    std::memory_order_acq_rel);
  }

  /// An error is that of all ranks.
  void act(Given given, Take take, const Lead& lead) {
    Record& outcome = record(place_.rank);
    const auto failed = [&](ErrorKind kind, const std::string& text) {
      outcome.kind = static_cast<std::int64_t>(kind);
      text.copy(outcome.text, most_text);
      outcome.text[std::min(text.size(), most_text)] = 0;
    };
    try {
      const std::vector<int> present = await_all();
      outcome.kind = -1;  // all have read that of the meeting before
      const ParameterLayout weights = this->weights();
      if (given == Given::mean)
        average(present);
      else
        std::memcpy(weights_.data(), brought(place_.rank), weights_.size_bytes());
      std::byte* const to = result(place_.rank);
      std::memcpy(to, weights_.data(), weights_.size_bytes());
      outcome.number = lead(weights);
      if (take == Take::change)
        write_change(layout_, to, weights_.data(), to);
      else
        std::memcpy(to, weights_.data(), weights_.size_bytes());
    } catch (const Error& error) {
      failed(error.kind(), error.what());
    } catch (const std::exception& error) {
      if (ended_by_check()) throw;
      failed(ErrorKind::internal, message_of(error));
    }
    require(close(), ErrorKind::internal,
            "site: rank {} was taken for lost while it led the site; it ends", place_.rank);
  }

  /// Those that live, and those that have come before they died.
  std::vector<int> await_all() const {
    std::vector<int> present;
    const Deadline deadline(longest_);
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto has_come = [&] {
        return record(rank).arrived.load(std::memory_order_acquire) >= meeting_;
      };
      require(look([&] { return has_come() || contains(gone(), rank); }, deadline),
              ErrorKind::deadline, "site: rank {} has not come to an exchange within {:g} s", rank,
              longest_.count());
      if (has_come()) present.push_back(rank);
    }
    return present;
  }

  /// One rank reports it: rank 0, or where that is lost the one that has led.
  [[noreturn]] void fail_as(const Record& outcome) const {
    const bool first_lives = !contains(gone(), 0);
    const bool is_mine = first_lives || leader_ == place_.rank;
    throw Error(is_mine ? static_cast<ErrorKind>(outcome.kind) : ErrorKind::peer_failed,
                std::string(outcome.text), first_lives);
  }

  /// In sums of 64 bits.
  void average(const std::vector<int>& present) {
    for_tensors(layout_, [&]<class T>(const Segment& place, T) {
      const std::span<T> mean = elements<T>(place, weights_.data());
      std::vector<const T*> from;
      for (const int rank : present) from.push_back(elements<T>(place, brought(rank)).data());
      for (std::size_t e = 0; e < mean.size(); ++e) {
        double sum = 0;
        for (const T* values : from) sum += static_cast<double>(values[e]);
        mean[e] = static_cast<T>(sum / static_cast<double>(from.size()));
      }
    });
  }

  void apply(Take take, int from) {
    if (take == Take::nothing) return;
    if (take == Take::change)
      add_change(layout_, result(from), brought(place_.rank));
    else
      std::memcpy(brought(place_.rank), result(from), model_.size_bytes());
    model_.scatter(brought(place_.rank));
  }

  Place place_;
  ParameterLayout model_, layout_;  ///< of the model's own memory, and packed
  Seconds longest_;
  std::int64_t meeting_ = 0;
  std::int64_t ended_ = 0;           ///< the latest meeting that has ended here
  int leader_ = 0;                   ///< of that one
  AlignedBuffer weights_;            ///< of the leading rank: what it acts on
  std::optional<Region> handovers_;  ///< those of even meetings, and those of odd ones
};

}  // namespace fast::sites
