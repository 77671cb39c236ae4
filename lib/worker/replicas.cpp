// The mean model and the consensus distance, from the workers' newest publications.
#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/topology/parts.hpp>
#include <numeric>
#include <thread>

#include "worker/engine.hpp"

namespace fast::worker {
namespace {

/// Calls visit(values, offset_elements, count) with each floating segment as T.
template <class Visit>
void for_elements(const ParameterLayout& layout, const std::byte* packed, const Visit& visit) {
  std::size_t first = 0;
  for (const Segment& segment : layout.segments()) {
    const std::byte* at = packed + segment.offset_bytes;
    const auto each = [&]<class T>(T) {
      const T* values = reinterpret_cast<const T*>(at);
      for (std::size_t e = 0; e < segment.element_count; ++e) {
        if constexpr (std::is_floating_point_v<T>) {
          visit(segment, first + e, e, static_cast<double>(values[e]));
        } else {
          visit(segment, first + e, e, static_cast<double>(to_float(values[e])));
        }
      }
    };
    switch (segment.dtype) {
      case DType::f32:
        each(float{});
        break;
      case DType::f64:
        each(double{});
        break;
      case DType::bf16:
        each(BFloat16{});
        break;
      default:
        each(Float16{});
        break;
    }
    first += segment.element_count;
  }
}

void store(std::byte* packed, const Segment& segment, std::size_t e, double value) {
  std::byte* at = packed + segment.offset_bytes + e * size_bytes(segment.dtype);
  switch (segment.dtype) {
    case DType::f32:
      *reinterpret_cast<float*>(at) = static_cast<float>(value);
      break;
    case DType::f64:
      *reinterpret_cast<double*>(at) = value;
      break;
    case DType::bf16:
      *reinterpret_cast<BFloat16*>(at) = to_bfloat16(static_cast<float>(value));
      break;
    default:
      *reinterpret_cast<Float16*>(at) = to_float16(static_cast<float>(value));
      break;
  }
}

std::size_t element_count(const ParameterLayout& layout) {
  std::size_t count = 0;
  for (const Segment& segment : layout.segments()) count += segment.element_count;
  return count;
}

}  // namespace

/// The weights of a worker's newest publication, packed; as its message has them, if it brings
/// nothing better. False when it could not be read whole.
bool Engine::read_replica(int worker, const AlignedBuffer& packed) const {
  link_.exchange->flush();
  if (mixer_->coded().kind() == codec::Kind::identity) {
    return link_.peers->snapshot(worker, {packed.data(), packed.size_bytes()}) != Snapshot::none;
  }
  const AlignedBuffer room(std::max(shape_.vector_bytes, shape_.weights_bytes));
  const Snapshot found = link_.peers->snapshot(worker, {room.data(), room.size_bytes()});
  if (found == Snapshot::weights) std::memcpy(packed.data(), room.data(), packed.size_bytes());
  if (found == Snapshot::message) codec::decode(mixer_->coded(), room.data(), packed.data());
  return found != Snapshot::none;
}

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

/// Calls visit(packed) with each worker's newest publication that could be read whole; returns how
/// many.
template <class Visit>
int Engine::for_replicas(const std::vector<int>& workers, const Visit& visit) const {
  const AlignedBuffer packed(layout().size_bytes());
  int seen = 0;
  for (const int worker : workers) {
    if (!read_replica(worker, packed)) continue;
    visit(packed.data());
    ++seen;
  }
  require(seen > 0, ErrorKind::internal, "mean model: no worker's weights could be read whole");
  return seen;
}

void Engine::mean_model(std::span<std::byte> packed) const {
  require(packed.size() >= layout().size_bytes(), ErrorKind::argument,
          "mean_model: room for {} bytes, {} are needed", packed.size(), layout().size_bytes());
  const std::vector<int> workers = own_part();
  const int seen = mean_of(workers, packed);
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

/// Returns of how many.
int Engine::mean_of(const std::vector<int>& workers, std::span<std::byte> packed) const {
  std::vector<double> sum(element_count(layout()));
  const int seen = for_replicas(workers, [&](const std::byte* replica) {
    for_elements(layout(), replica, [&](const Segment&, std::size_t i, std::size_t, double value) {
      sum[i] += value;
    });
  });
  for_elements(layout(), packed.data(),
               [&](const Segment& segment, std::size_t i, std::size_t e, double) {
                 store(packed.data(), segment, e, sum[i] / seen);
               });
  return seen;
}

double Engine::consensus_distance() const {
  // Around the first replica r: mean ‖x_i - r‖² - ‖x̄ - r‖².
  std::vector<double> first, sum(element_count(layout()));
  double squares = 0;
  const int seen = for_replicas(own_part(), [&](const std::byte* replica) {
    const bool is_first = first.empty();
    if (is_first) first.resize(sum.size());
    for_elements(layout(), replica,
                 [&](const Segment& segment, std::size_t i, std::size_t, double value) {
                   if (segment.role != Role::parameter) return;
                   if (is_first) first[i] = value;
                   const double difference = value - first[i];
                   sum[i] += difference;
                   squares += difference * difference;
                 });
  });
  double of_mean = 0;
  for (const double s : sum) of_mean += (s / seen) * (s / seen);
  return std::sqrt(std::max(0.0, squares / seen - of_mean));
}

}  // namespace fast::worker
