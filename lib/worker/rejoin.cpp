// A worker that comes back after a stop, or whose weights are of no use, starts from its
// neighbors'.
#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>

#include "exchange/failure_detector.hpp"
#include "worker/engine.hpp"
#include "worker/startup.hpp"

namespace fast::worker {
namespace {

/// Rounds that a neighbor's slots may lie ahead in the ordinary course of staleness 0.
constexpr std::int64_t usual_lead = 2;

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

/// By the beats of this worker's own heart, which stand still with it.
bool Engine::was_stopped() {
  const auto now = Clock::now();
  const std::uint64_t beats = link_.peers->peer(group_.rank()).heartbeat;
  const Seconds passed = now - std::exchange(round_ended_, now);
  const auto beaten =
      static_cast<double>(beats - std::exchange(beats_, beats)) / exchange::beats_per_second;
  return passed > options_.suspect_after && beaten < passed.count() / 2;
}

/// The furthest round that a living neighbor of the round to come is in.
std::int64_t Engine::furthest_neighbor() const {
  std::int64_t furthest = combinations_;
  for (const int neighbor : plan_->at(combinations_)->edges.sources) {
    const PeerState peer = link_.peers->peer(neighbor);
    if (peer.status == WorkerStatus::running) furthest = std::max(furthest, peer.progress);
  }
  return furthest;
}

bool Engine::keeps_up(const std::vector<Arrival>& arrivals) {
  const bool stopped = was_stopped();
  const auto any = [&](Arrival::State state) {
    return std::any_of(arrivals.begin(), arrivals.end(),
                       [state](const Arrival& arrival) { return arrival.state == state; });
  };
  if (options_.staleness == 0) {
    const bool left_behind = any(Arrival::State::missed) && !any(Arrival::State::present);
    return !left_behind || furthest_neighbor() - combinations_ <= usual_lead;
  }
  if (sends_sums(declared_, options_)) return true;  // what it missed is in its neighbors' sums
  return !stopped || furthest_neighbor() - combinations_ <= options_.rejoin_after;
}

/// The average of what neighbors that have made so many rounds stand at becomes this worker's
/// weights. False when none could be read.
bool Engine::adopt_neighbors(std::int64_t least_progress) {
  std::vector<int> sources;
  for (const int neighbor : plan_->at(combinations_)->edges.sources) {
    const PeerState peer = link_.peers->peer(neighbor);
    if (peer.sequence > 0 && peer.progress >= least_progress) sources.push_back(neighbor);
  }
  const AlignedBuffer packed(layout().size_bytes());
  try {
    reader_->mean_of(sources, {packed.data(), packed.size_bytes()});
  } catch (const Error&) {
    return false;
  }
  if (!is_finite(layout(), packed.data())) return false;
  mixer_->copy_weights_from(packed.data());
  return true;
}

/// The rounds missed count as made. Leaves both counters one short, as the round that could not be
/// made is about to be counted.
void Engine::rejoin() {
  const auto behind = std::max<std::int64_t>(1, furthest_neighbor() - combinations_);
  require(
      adopt_neighbors(combinations_), ErrorKind::deadline,
      "Worker: worker {} was left behind in round {} and finds no neighbor whose weights it could "
      "adopt; resume from a checkpoint",
      group_.rank(), combinations_);
  combinations_ += behind;
  mixer_->restart(mixer_->epoch() + 1);
  publish_first(combinations_);
  link_.exchange->complete(combinations_);
  --combinations_;
  stats_.rounds += behind * options_.mix_every * declared_.combine_every - 1;
  ++stats_.rejoined;
  if (options_.log) {
    options_.log(
        LogLevel::warning,
        fmt::format("worker {}: was {} rounds behind its neighbors and has taken over their "
                    "average",
                    group_.rank(), behind));
  }
}

bool Engine::weights_are_finite() {
  if (options_.accelerator) {
    const AlignedBuffer packed(layout().size_bytes());
    mixer_->copy_weights_to(packed.data());
    return is_finite(layout(), packed.data());
  }
  const auto& segments = layout().segments();
  return std::all_of(segments.begin(), segments.end(), [](const Segment& segment) {
    return is_finite(segment, static_cast<const std::byte*>(segment.data));
  });
}

/// A step that left nothing finite is left out: the worker is where it last published from, or
/// where its neighbors are.
void Engine::heal() {
  if (!std::exchange(ill_, false) && weights_are_finite()) return;
  const AlignedBuffer packed(layout().size_bytes());
  const bool has_own = reader_->read(group_.rank(), packed) && is_finite(layout(), packed.data());
  if (has_own) mixer_->copy_weights_from(packed.data());
  require(
      has_own || adopt_neighbors(0), ErrorKind::numeric,
      "Worker: the weights of worker {} in round {} are not finite, nor are its neighbors'; try "
      "a smaller learning rate",
      group_.rank(), stats_.rounds);
  ++stats_.healed;
  if (options_.on_healed) options_.on_healed();
}

}  // namespace fast::worker
