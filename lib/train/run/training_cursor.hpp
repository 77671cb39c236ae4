// How far a run is.
#pragma once

#include <fast/data/sample_stream.hpp>
#include <fast/train/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace fast::train {

/// Where a run continues that stood before round `round` of an epoch of `of` rounds, in an epoch of
/// `rounds`: the nearest round in [0, rounds).
std::size_t place_in_epoch(std::int64_t round, std::int64_t of, std::size_t rounds);

/// Epochs, rounds of the epoch, and rounds. A resumed run goes on counting.
class TrainingCursor {
 public:
  /// `stream`: of a run on a stream, whose place belongs to the run's; else null.
  explicit TrainingCursor(std::size_t epoch_rounds,
                          std::shared_ptr<data::StreamOrder> stream = nullptr)
      : epoch_rounds_(epoch_rounds), stream_(std::move(stream)) {}

  int epoch() const { return epoch_; }          ///< of the next round
  std::size_t round() const { return round_; }  ///< the next one of that epoch
  std::size_t epoch_rounds() const { return epoch_rounds_; }
  std::int64_t rounds() const { return rounds_; }  ///< made since the run's first beginning
  /// The same of this worker: above staleness 0, workers may have saved in different rounds.
  std::int64_t own_rounds() const { return own_rounds_; }
  /// Those of the checkpoint from which the run was resumed, the same on all workers; 0: it was
  /// not.
  std::int64_t resumed_from() const { return resumed_from_; }

  /// In which the round was that lies so many rounds back, if all epochs since then have had as
  /// many rounds.
  int epoch_of_past(std::int64_t rounds_back) const;

  /// More than one round when the worker was stopped for a while and caught up. Less than none when
  /// it takes the seat of a worker that had made more rounds than its neighbors.
  void advance(std::int64_t rounds_made);

  /// For a checkpoint's file.
  Metadata to_metadata() const;
  /// Takes the place in the data from a checkpoint's file. With another number of workers an epoch
  /// has another number of rounds. Throws Error(data) when the file does not tell the place.
  void take_place(const Metadata& metadata);
  /// `own`: of this worker.
  void count_from(std::int64_t rounds, std::int64_t own) {
    rounds_ = resumed_from_ = rounds;
    own_rounds_ = own;
  }
  /// The place at round `round`, if epoch `epoch` begins in round `begins`.
  void take_place(int epoch, std::int64_t begins, std::int64_t round);
  /// Epochs have so many rounds from the beginning of the present one on.
  void begin_epochs_of(std::size_t epoch_rounds) { epoch_rounds_ = epoch_rounds; }

 private:
  std::size_t epoch_rounds_;
  std::shared_ptr<data::StreamOrder> stream_;
  int epoch_ = 0;
  std::size_t round_ = 0;
  std::int64_t rounds_ = 0, own_rounds_ = 0, resumed_from_ = 0;
};

/// How often a run had lowered its learning rate; a file without it: never.
inline constexpr auto lr_reductions_key = "fast.lr_reductions";

/// A number of a checkpoint's metadata. Throws Error(data) when it is missing.
std::int64_t metadata_number(const Metadata& metadata, const std::string& name);

}  // namespace fast::train
