#include "worker/model_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>

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

ModelReader::ModelReader(Exchange& exchange, std::shared_ptr<const Peers> peers,
                         const combine::Mixer& mixer, const PayloadShape& shape)
    : exchange_(&exchange), peers_(std::move(peers)), mixer_(&mixer), shape_(shape) {}

bool ModelReader::read(int worker, const AlignedBuffer& packed) const {
  exchange_->flush();
  const codec::CodedLayout& coded = mixer_->coded();
  if (coded.kind() == codec::Kind::identity) {
    return peers_->snapshot(worker, {packed.data(), packed.size_bytes()}) != Snapshot::none;
  }
  const AlignedBuffer room(std::max(shape_.vector_bytes, shape_.weights_bytes));
  const Snapshot found = peers_->snapshot(worker, {room.data(), room.size_bytes()});
  if (found == Snapshot::weights) std::memcpy(packed.data(), room.data(), packed.size_bytes());
  if (found == Snapshot::message) codec::decode(coded, room.data(), packed.data());
  return found != Snapshot::none;
}

/// Calls visit(packed) with the weights of each worker that could be read whole; returns how many.
template <class Visit>
int ModelReader::for_each(const std::vector<int>& workers, const Visit& visit) const {
  const AlignedBuffer packed(mixer_->layout().size_bytes());
  int seen = 0;
  for (const int worker : workers) {
    if (!read(worker, packed)) continue;
    visit(packed.data());
    ++seen;
  }
  require(seen > 0, ErrorKind::internal, "mean model: no worker's weights could be read whole");
  return seen;
}

int ModelReader::mean_of(const std::vector<int>& workers, std::span<std::byte> packed) const {
  const ParameterLayout& layout = mixer_->layout();
  std::vector<double> sum(element_count(layout));
  const int seen = for_each(workers, [&](const std::byte* replica) {
    for_elements(layout, replica, [&](const Segment&, std::size_t i, std::size_t, double value) {
      sum[i] += value;
    });
  });
  for_elements(layout, packed.data(),
               [&](const Segment& segment, std::size_t i, std::size_t e, double) {
                 store(packed.data(), segment, e, sum[i] / seen);
               });
  return seen;
}

double ModelReader::distance_among(const std::vector<int>& workers) const {
  // Around the first replica r: mean ‖x_i - r‖² - ‖x̄ - r‖².
  const ParameterLayout& layout = mixer_->layout();
  std::vector<double> first, sum(element_count(layout));
  double squares = 0;
  const int seen = for_each(workers, [&](const std::byte* replica) {
    const bool is_first = first.empty();
    if (is_first) first.resize(sum.size());
    for_elements(layout, replica,
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
  return std::sqrt(std::max(squares / seen - of_mean, 0.0));  // the first argument if it is NaN
}

}  // namespace fast::worker
