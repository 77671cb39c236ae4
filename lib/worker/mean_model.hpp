// The mean model of the workers that a worker trains with.
#pragma once

#include <span>
#include <vector>

#include "worker/context.hpp"
#include "worker/model_reader.hpp"
#include "worker/reduction.hpp"

namespace fast::worker {

/// No call but reduce() needs the other workers. `workers` are the workers to average.
class MeanModel {
 public:
  MeanModel(const Context& context, const ModelReader& reader)
      : worker_(context), reader_(reader) {}

  /// Packed. Warns when some could not be read, and when their number changes.
  void read(const std::vector<int>& workers, std::span<std::byte> packed) const;
  /// Into tensors of the model's layout, on the host or on this worker's device.
  void read(const std::vector<int>& workers, const std::vector<TensorView>& out) const;
  /// The distance, and the mean if there is room for it; see Reduction. Warns likewise.
  double reduce(Reduction& reduction, const std::vector<int>& workers,
                std::span<std::byte> packed) const;

 private:
  void warn_of_missing(int missing, std::size_t all) const;

  Context worker_;
  const ModelReader& reader_;
  mutable int missing_ = 0;  ///< at the latest read
};

}  // namespace fast::worker
