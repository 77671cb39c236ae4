// What a run is going to do, as a table for people, and where its ranks are placed.
#pragma once

#include <fast/mixing/weights.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/placement.hpp"

namespace fast::train {

/// What the workers train, for the opening table. Empty texts are left out.
struct TrainingOverview {
  std::string data, model, optimizer, learning_rate, validation;
  std::size_t samples = 0, parameters = 0;
  std::size_t batch_size = 0;  ///< of each worker
  std::string balance{};       ///< how the samples of a round are divided; empty: evenly
  std::size_t epoch_rounds = 0;
  int epochs = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> notes{};  ///< about the data; see data::Splits
};

struct Overview {
  std::optional<TrainingOverview> training;
  int workers = 0;
  int hosts = 1;
  std::vector<std::string> devices;  ///< what each worker computes on; empty: all on the CPU
  std::string topology;
  std::string exchange;
  std::string algorithm;
  std::string codec;
  std::string staleness;  ///< a number or "inf"
  Spectrum spectrum;      ///< of the weights that the options ask for, which closing rounds use
  /// The spectrum of (I+W)/2, if the algorithm runs with these weights in place of the given ones.
  std::optional<Spectrum> lazy_spectrum{};
  std::string unconnected;             ///< whose values never reach whom; empty: connected
  std::optional<Placement> placement;  ///< set by lay_out()
  std::optional<double> stability;     ///< awc_stability_factor() or that of atc, when it is known
  double momentum = 0;                 ///< of the optimizer, for `stability`

  /// Returns the spectrum of the weights that training uses.
  const Spectrum& in_use() const { return lazy_spectrum ? *lazy_spectrum : spectrum; }

  /// Two columns, one row for each field. An all-reduce has no rows about neighbors.
  std::string to_table() const;
};

/// Whether that is the exchange of a run that averages gradients over all workers.
inline bool all_reduces(std::string_view exchange) { return exchange == "allreduce"; }

/// The schedule in terms of ranks. On several hosts place() places the ranks unless `may_move` is
/// false; `overview` gets the numbers of edges between hosts before and after. host_of_rank as in
/// place().
Schedule lay_out(const Schedule& schedule, const std::vector<int>& host_of_rank, bool may_move,
                 Overview& overview);

}  // namespace fast::train
