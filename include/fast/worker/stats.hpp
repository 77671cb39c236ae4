// What a worker has done and where its time went.
#pragma once

#include <array>
#include <cstdint>

namespace fast {

struct WorkerStats {
  std::int64_t rounds = 0;
  double step_s = 0;             ///< in the user's own step (between begin_round and end_round)
  double wait_s = 0;             ///< waiting for neighbors
  double publish_s = 0;          ///< writing publications that no mixing pass could write
  double mix_s = 0;              ///< in the averaging pass
  std::int64_t reads = 0;        ///< neighbors' publications combined
  std::int64_t fresh_reads = 0;  ///< of these, not combined before
  /// Reads repeated because a neighbor's slot changed meanwhile: of blocks of the model in
  /// rules that only average, else of the whole model.
  std::int64_t rejected = 0;
  std::int64_t skipped = 0;  ///< neighbors left out of a round: torn thrice, suspect or finished
  /// Combined publications by age: how many rounds behind one's own; negative ages count as 0, the
  /// last bin takes the rest. Of several publications of a neighbor in a round, the oldest counts.
  std::array<std::int64_t, 16> ages{};
  std::int64_t rejoined = 0;  ///< times that the worker caught up by adopting neighbors' weights
  /// Of a spare that has taken a seat: the rounds that count as made when it began, and those that
  /// the worker before it is known to have made. 0 for all other workers.
  std::int64_t joined_at = 0, predecessor_rounds = 0;
  std::int64_t healed = 0;         ///< rounds whose step left a loss or weights that are not finite
  std::int64_t messages_sent = 0;  ///< publications × readers, over all rounds
  std::int64_t messages_held = 0;  ///< left out as the rule kept the last one in force
  double bytes_sent = 0;           ///< payload bytes, as coded, × readers, over all rounds
  /// Bytes of other workers' models that this worker has read for mean models and distances, and to
  /// adopt weights.
  double model_bytes_read = 0;
  /// Bound on how far dropped neighbors have moved the mean: Σ over rounds of the column weights
  /// lost.
  double mean_drift_weight = 0;
  /// The mixing weights are (I+W)/2: by WorkerOptions::lazy_weights, or because the algorithm needs
  /// larger eigenvalues than those of W. Averages then take about twice as many rounds.
  bool lazy_weights = false;
};

}  // namespace fast
