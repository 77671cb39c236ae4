// The mean model and the consensus distance of those workers that this one trains with.
#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/parts.hpp>
#include <numeric>

#include "worker/engine.hpp"

namespace fast::worker {

/// Workers whose weights have been averaged with this one's to the end: all, or, once it is known
/// who was lost, those of its part.
std::vector<int> Engine::own_part() const {
  if (!left_ || lost_.empty()) {
    std::vector<int> all(static_cast<std::size_t>(group_.size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const auto parts = living_parts(schedule(), lost_);
  const auto own = std::find_if(parts.begin(), parts.end(), [&](const std::vector<int>& part) {
    return std::binary_search(part.begin(), part.end(), group_.rank());
  });
  return own == parts.end() ? std::vector<int>{group_.rank()} : *own;
}

void Engine::mean_model(std::span<std::byte> packed) const {
  require(packed.size() >= layout().size_bytes(), ErrorKind::argument,
          "mean_model: room for {} bytes, {} are needed", packed.size(), layout().size_bytes());
  const std::vector<int> workers = own_part();
  const int seen = reader_->mean_of(workers, packed);
  if (options_.log && seen < static_cast<int>(workers.size())) {
    options_.log(LogLevel::warning,
                 fmt::format("worker {}: the mean model is that of {} of {} workers; the others' "
                             "weights could not be read",
                             group_.rank(), seen, workers.size()));
  }
}

void Engine::mean_model(const std::vector<TensorView>& out) const {
  const ParameterLayout target = layout().rebound(out);
  const AlignedBuffer packed(target.size_bytes());
  mean_model({packed.data(), packed.size_bytes()});
  if (target.device() == Device{}) {
    target.scatter(packed.data());
    return;
  }
  require(target.device() == layout().device(), ErrorKind::argument,
          "mean_model: tensors in {}, this worker's are in {}; hand over such or host memory",
          place(target.device()), place(layout().device()));
  mixer_->copy_weights_from(packed.data(), target);
}

double Engine::consensus_distance() const { return reader_->distance_among(own_part()); }

}  // namespace fast::worker
