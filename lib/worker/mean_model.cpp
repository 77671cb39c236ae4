#include "worker/mean_model.hpp"

#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <utility>

namespace fast::worker {

void MeanModel::read(const std::vector<int>& workers, std::span<std::byte> packed) const {
  const std::size_t needed = worker_.mixer.layout().size_bytes();
  require(packed.size() >= needed, ErrorKind::argument,
          "mean_model: room for {} bytes, {} are needed", packed.size(), needed);
  const int seen = reader_.mean_of(workers, packed);
  warn_of_missing(static_cast<int>(workers.size()) - seen, workers.size());
}

double MeanModel::reduce(Reduction& reduction, const std::vector<int>& workers,
                         std::span<std::byte> packed) const {
  const Reduction::Found found = reduction.run(workers, packed);
  if (!packed.empty()) {
    warn_of_missing(static_cast<int>(workers.size()) - found.workers, workers.size());
  }
  return found.distance;
}

void MeanModel::warn_of_missing(int missing, std::size_t all) const {
  if (std::exchange(missing_, missing) == missing || missing == 0) return;
  worker_.warn(
      fmt::format("worker {}: the mean model is that of {} of {} workers; the others' weights "
                  "could not be read",
                  worker_.rank(), static_cast<int>(all) - missing, all));
}

void MeanModel::read(const std::vector<int>& workers, const std::vector<TensorView>& out) const {
  const ParameterLayout& layout = worker_.mixer.layout();
  const ParameterLayout target = layout.rebound(out);
  const AlignedBuffer packed(target.size_bytes());
  read(workers, std::span(packed.data(), packed.size_bytes()));
  if (target.device() == Device{}) {
    target.scatter(packed.data());
    return;
  }
  require(target.device() == layout.device(), ErrorKind::argument,
          "mean_model: tensors in {}, this worker's are in {}; hand over such or host memory",
          describe(target.device()), describe(layout.device()));
  worker_.mixer.memory().copy_weights_from(packed.data(), target);
}

}  // namespace fast::worker
