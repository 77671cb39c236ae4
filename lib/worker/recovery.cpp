#include "worker/recovery.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

namespace fast::worker {
namespace {

template <class Bits>
bool finite_bits(const std::byte* data, std::size_t count, Bits exponent) {
  const auto* bits = reinterpret_cast<const Bits*>(data);
  unsigned not_finite = 0;
  for (std::size_t e = 0; e < count; ++e) not_finite |= (bits[e] & exponent) == exponent ? 1U : 0U;
  return not_finite == 0;
}

bool is_finite(const Segment& segment, const std::byte* data) {
  const std::size_t count = segment.element_count;
  switch (segment.dtype) {
    case DType::f32:
      return finite_bits<std::uint32_t>(data, count, 0x7f800000U);
    case DType::f64:
      return finite_bits<std::uint64_t>(data, count, 0x7ff0000000000000U);
    case DType::bf16:
      return finite_bits<std::uint16_t>(data, count, std::uint16_t{0x7f80});
    default:
      return finite_bits<std::uint16_t>(data, count, std::uint16_t{0x7c00});
  }
}

bool is_finite(const ParameterLayout& layout, const std::byte* packed) {
  const auto& segments = layout.segments();
  return std::all_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return is_finite(segment, packed + segment.offset_bytes);
  });
}

}  // namespace

Recovery::Recovery(const Context& context, const Peers& peers, RoundPlan& plan,
                   const ModelReader& reader)
    : worker_(context), peers_(peers), plan_(plan), reader_(reader) {}

/// The weights become the average of the neighbors that have made at least so many rounds. False
/// when none could be read.
bool Recovery::adopt_neighbors(std::int64_t least_progress) {
  std::vector<int> sources;
  for (const int neighbor : plan_.at(worker_.progress.combinations)->edges.sources) {
    const PeerState peer = peers_.peer(neighbor);
    if (peer.sequence > 0 && peer.progress >= least_progress) sources.push_back(neighbor);
  }
  const ParameterLayout& layout = worker_.mixer.layout();
  const AlignedBuffer packed(layout.size_bytes());
  try {
    reader_.mean_of(sources, {packed.data(), packed.size_bytes()});
  } catch (const Error&) {
    return false;
  }
  if (!is_finite(layout, packed.data())) return false;
  worker_.mixer.copy_weights_from(packed.data());
  return true;
}

void Recovery::rejoin(Publisher& publisher, std::int64_t furthest) {
  Progress& progress = worker_.progress;
  const auto behind = std::max<std::int64_t>(1, furthest - progress.combinations);
  require(adopt_neighbors(progress.combinations), ErrorKind::deadline,
          "Worker: worker {} was left behind in round {} and finds no neighbor whose weights it "
          "could adopt; resume from a checkpoint",
          worker_.rank(), progress.combinations);
  progress.combinations += behind;
  publisher.restart(progress.combinations);
  worker_.exchange.complete(progress.combinations);
  --progress.combinations;
  progress.stats.rounds += behind * worker_.setting.steps() - 1;
  ++progress.stats.rejoined;
  worker_.warn(
      fmt::format("worker {}: was {} rounds behind its neighbors and has taken over their average",
                  worker_.rank(), behind));
}

bool Recovery::weights_are_finite() {
  const ParameterLayout& layout = worker_.mixer.layout();
  if (worker_.options().accelerator) {
    const AlignedBuffer packed(layout.size_bytes());
    worker_.mixer.copy_weights_to(packed.data());
    return is_finite(layout, packed.data());
  }
  const auto& segments = layout.segments();
  return std::all_of(segments.begin(), segments.end(), [](const Segment& segment) {
    return is_finite(segment, static_cast<const std::byte*>(segment.data));
  });
}

void Recovery::heal() {
  if (!std::exchange(bad_loss_, false) && weights_are_finite()) return;
  const ParameterLayout& layout = worker_.mixer.layout();
  const AlignedBuffer packed(layout.size_bytes());
  const bool has_own = reader_.read(worker_.rank(), packed) && is_finite(layout, packed.data());
  if (has_own) worker_.mixer.copy_weights_from(packed.data());
  require(has_own || adopt_neighbors(0), ErrorKind::numeric,
          "Worker: the weights of worker {} in round {} are not finite, nor are its neighbors'; "
          "try a smaller learning rate",
          worker_.rank(), worker_.progress.stats.rounds);
  ++worker_.progress.stats.healed;
  if (worker_.options().on_healed) worker_.options().on_healed();
}

}  // namespace fast::worker
