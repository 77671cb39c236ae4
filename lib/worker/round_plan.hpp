// Whom a worker reads in a round and with which weights, from schedule and weight rule.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/topology.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fast::worker {

/// Rows and edges of one worker, remembered for schedules of short period.
class RoundPlan {
 public:
  /// `passes_mass`: the rule needs Round::shares. `vector_bytes`: of a payload's vector, which
  /// schedules in shards divide. `by_edge`: of Messages::by_edge, the vectors of a message; 0:
  /// others.
  RoundPlan(Schedule schedule, int worker, WeightRule rule, bool lazy, bool passes_mass,
            std::size_t vector_bytes = 0, int by_edge = 0);

  const Schedule& schedule() const { return schedules_.back().schedule; }
  bool has_lazy_weights() const { return schedules_.back().lazy; }
  /// Another schedule from combination `from` on.
  void change(Schedule schedule, std::int64_t from, WeightRule rule, bool lazy);
  /// One combination is left out: the coming one is `next`. A change that had not begun before
  /// begins one combination later, in the same round of training.
  void skip_to(std::int64_t next);
  struct Round {
    MixingRow row;
    RoundEdges edges;
    bool between_sites = false;  ///< see host_edges_of()
    /// Of column-stochastic weights: which share of this worker's mass each destination takes.
    std::vector<double> shares;
    std::vector<int>
        vectors{};  ///< of Messages::by_edge: which one of each neighbor is for this worker
  };
  /// Of combination t ≥ 0. Any thread may ask.
  std::shared_ptr<const Round> at(std::int64_t combination);
  /// Of the newest schedule, which must be of pairs. Computed once.
  algorithm::Meetings meetings();

 private:
  struct Piece {
    std::int64_t from;
    Schedule schedule;
    WeightRule rule;
    bool lazy;
  };
  const Piece& piece(std::int64_t combination) const;
  std::shared_ptr<const Round> make(std::int64_t combination) const;

  std::vector<Piece> schedules_;
  int worker_;
  bool passes_mass_;
  std::size_t vector_bytes_;
  int by_edge_;
  std::mutex mutex_;  ///< guards all but schedules_.back(), which one thread changes and reads
  std::unordered_map<std::int64_t, std::shared_ptr<const Round>> rounds_;
  std::optional<algorithm::Meetings> meetings_;
};

}  // namespace fast::worker
