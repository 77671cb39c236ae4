// The mean model of the workers that a worker trains with.
#pragma once

#include <fast/core/memory.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exchange/peers.hpp"
#include "worker/context.hpp"
#include "worker/model_reader.hpp"
#include "worker/publisher.hpp"

namespace fast::worker {

// The mean model and the distance of all workers' final weights, computed together.

/// Worker j averages the j-th part of all replicas and leaves it in its memory; then all workers
/// read all parts. Together they read 2 (N - 1) P bytes of each other, for replicas of P bytes.
///
/// A worker that dies meanwhile holds nobody: the lowest worker that lives computes the part that
/// is missing, and the others read it there. No worker waits for a higher one to do so. Workers
/// that disagree on who has died may compute a part twice.
class Reduction {
 public:
  struct Found {
    double distance = 0;
    int workers = 0;  ///< whose weights are in all parts of the mean
  };

  Reduction(const Context& context, std::shared_ptr<Peers> peers, const ModelReader& reader);

  /// After all workers have finished. Each of `workers` calls it, this one among them. Without
  /// `packed`, the distance alone; it may be called once more for the mean.
  Found run(const std::vector<int>& workers, std::span<std::byte> packed);

 private:
  using Stage = Reduced::Stage;
  struct Part {
    std::vector<ElementBlock> blocks;
    std::size_t begin_bytes() const { return blocks.empty() ? 0 : blocks.front().offset_bytes; }
    std::size_t end_bytes() const { return blocks.empty() ? 0 : blocks.back().end_bytes(); }
  };

  bool is_possible();
  Found directly(const std::vector<int>& workers, std::span<std::byte> packed) const;
  void begin(const std::vector<int>& workers);
  Reduced::Figures compute(int part);
  bool fetch(int part, int from);
  std::vector<int> collect(bool with_mean);
  void complete(const std::vector<int>& missing);
  void take_missing(int from, const std::vector<int>& missing);
  std::optional<Reduced> await(int worker, Stage stage);
  bool is_gone(int worker) const;
  void finish(Stage stage, std::optional<Reduced::Figures> all);

  Context worker_;
  std::shared_ptr<Peers> peers_;
  const ModelReader& reader_;
  std::vector<int> workers_;  ///< sorted
  std::vector<Part> parts_;   ///< by worker, of those that have died too
  std::vector<std::optional<Reduced::Figures>> figures_;  ///< of the parts
  std::span<std::byte> room_;
  Reduced shown_;
};

/// No call but reduce() needs the other workers. `workers` are the workers to average.
class MeanModel {
 public:
  MeanModel(const Context& context, const ModelReader& reader, std::shared_ptr<const Peers> peers)
      : worker_(context), reader_(reader), peers_(std::move(peers)) {}

  /// Packed. Warns when some could not be read, and when their number changes.
  std::vector<MeanPart> read(const std::vector<int>& workers, std::span<std::byte> packed) const;
  /// Into tensors of the model's layout, on the host or on this worker's device.
  std::vector<MeanPart> read(const std::vector<int>& workers,
                             const std::vector<TensorView>& out) const;
  /// The distance, and the mean if there is room for it; see Reduction. Warns likewise.
  double reduce(Reduction& reduction, const std::vector<int>& workers,
                std::span<std::byte> packed) const;

 private:
  void warn_of_missing(int missing, std::size_t all) const;
  std::int64_t steps_in(const ModelReader::Seen& seen) const;

  Context worker_;
  const ModelReader& reader_;
  std::shared_ptr<const Peers> peers_;
  mutable int missing_ = 0;  ///< at the latest read
};

// Exact averages over all workers, for rules that need them.

/// f32 and f64 models only: else Error(argument) at the first average.
class GlobalAverage {
 public:
  GlobalAverage(const Context& context, std::unique_ptr<Reducer> reducer);

  /// Collective. A round of a rule of Scope::everybody: it gets the average of all workers' steps.
  void combine(const algorithm::RoundInfo& info, Publisher& publisher);
  /// Collective. The weights become the average of all workers' weights.
  void average(const algorithm::RoundInfo& info, Publisher& publisher);

 private:
  const std::byte* average_of_weights(const std::byte* base);
  void average(const Segment& segment, const std::byte* base);

  Context worker_;
  std::unique_ptr<Reducer> reducer_;
  AlignedBuffer averaged_;
};

}  // namespace fast::worker
