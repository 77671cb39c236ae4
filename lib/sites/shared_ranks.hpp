// The ranks of a site on one host: they meet in shared memory, and any of them may be lost.
#pragma once

#include <fast/core/memory.hpp>

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "exchange/collective/all_reduce.hpp"
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
  static std::size_t part_bytes(const ParameterLayout& model);

  SharedRanks(Place place, const ParameterLayout& model, Seconds longest);

  std::int64_t meet(Given given, Take take, const Lead& lead) override;
  bool leads() const override { return first_living() == place_.rank; }
  ParameterLayout weights() override;
  void open_handover(std::size_t bytes) override;
  void leave_handover(std::span<const std::byte> bytes) override;
  std::span<const std::byte> handover() const override;
  void rebind(const ParameterLayout& model) override { model_ = model; }

 private:
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
  Record& record(int rank) const;
  std::byte* brought(int rank) const;
  std::byte* result(int rank) const;
  std::span<std::byte> handover_of(std::int64_t meeting) const;
  int first_living() const;
  std::vector<int> gone() const;
  template <class IsOver>
  bool look(const IsOver& is_over, const Deadline& deadline) const;
  /// The rank that has closed this meeting; -1: none yet.
  int closed_by() const;
  bool close();
  void act(Given given, Take take, const Lead& lead);
  std::vector<int> await_all() const;
  [[noreturn]] void fail_as(const Record& outcome) const;
  void average(const std::vector<int>& present);
  void apply(Take take, int from);

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
