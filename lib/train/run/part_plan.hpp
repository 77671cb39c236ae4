// Which samples a worker trains on, also when other workers are gone.
#pragma once

#include <fast/core/log.hpp>
#include <fast/data/dataset.hpp>
#include <fast/data/sharding.hpp>
#include <fast/topology/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace fast::train {

/// The samples of worker `rank` when the workers in `gone` are gone: its own samples of `parts`,
/// and its part of theirs. The living workers that read a gone worker in some round divide its
/// samples evenly. Ascending. Workers that agree about who is gone take every sample once.
std::vector<std::size_t> samples_with_those_of(const std::set<int>& gone,
                                               const std::vector<std::vector<std::size_t>>& parts,
                                               const Schedule& schedule, int rank);

/// Of one worker. Only skewed parts have owners; even ones are dealt again in every epoch.
class PartPlan {
 public:
  struct Options {
    data::Sharding sharding;
    std::uint64_t seed = 1;
    std::int64_t steps = 1;  ///< between two combinations
    bool take_over = false;  ///< of samples whose owner is gone
    LogSink log;
  };
  PartPlan(data::Dataset samples, Schedule schedule, int rank, Options options);

  int workers() const { return schedule_.workers(); }  ///< to whom the samples are dealt
  /// The worker's own samples; empty with even parts.
  std::vector<std::size_t> own() const;

  /// A neighbor was left out of a round.
  void note_missed(int neighbor, std::int64_t round) { missed_[neighbor] = round; }
  /// Between epochs of `epoch_rounds`, before round `round`; `lost` are silent workers of this
  /// host. The samples from now on; empty: as before.
  std::optional<std::vector<std::size_t>> take_over(const std::vector<int>& lost,
                                                    std::int64_t round, std::size_t epoch_rounds);

 private:
  std::vector<std::vector<std::size_t>> all() const;
  std::set<int> gone(const std::vector<int>& lost, std::int64_t round,
                     std::size_t epoch_rounds) const;

  data::Dataset samples_;
  Schedule schedule_;
  int rank_;
  Options options_;
  std::map<int, std::int64_t> missed_;  ///< by neighbor: the last such round
  std::set<int> taken_from_;            ///< whose samples have been shared out
};

}  // namespace fast::train
