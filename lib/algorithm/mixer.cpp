#include "algorithm/mixer.hpp"

#include <fast/core/error.hpp>

#include "algorithm/segment_sweep.hpp"

namespace fast::algorithm {

Mixer::Mixer(ParameterLayout layout, std::shared_ptr<Algorithm> algorithm)
    : layout_(std::move(layout)), algorithm_(std::move(algorithm)) {
  const Declaration& declared = algorithm_->declaration();
  require(declared.state_vectors <= max_state_vectors &&
              declared.payload_vectors <= max_payload_vectors &&
              declared.payload_scalars <= max_payload_scalars,
          ErrorKind::internal,
          "algorithm {}: {} state vectors, {} payload vectors and {} scalars; at most {}, {} and "
          "{} are supported",
          declared.name, declared.state_vectors, declared.payload_vectors, declared.payload_scalars,
          max_state_vectors, max_payload_vectors, max_payload_scalars);
  for (int s = 0; s < declared.state_vectors; ++s) state_.emplace_back(kept_bytes());
}

std::size_t Mixer::kept_bytes() const {
  std::size_t bytes = 0;
  for (const Segment& segment : layout_.segments()) {
    bytes += round_up(segment.element_count * sizeof(double), cache_line_bytes);
  }
  return bytes;
}

void Mixer::start(bool equal) {
  run({.kind = Pass::Kind::start, .info = {.starts_equal = equal}, .own = {}});
}

bool Mixer::begin_publish(const Payload& own, const RoundInfo& info) {
  if (algorithm_->declaration().surveys) {
    run({.kind = Pass::Kind::survey, .info = info, .own = own});
  }
  return algorithm_->begin_publish(info, scalars());
}

void Mixer::publish(const MutablePayload& next, const RoundInfo& info) {
  std::copy_n(scalars_.begin(), scalars().size(), next.scalars);
  run({.kind = Pass::Kind::publish, .info = info, .own = {}, .next = &next});
}

void Mixer::look_at(const Neighborhood& neighborhood) {
  const bool unit = algorithm_->declaration().mixing == Mixing::unit;
  const std::size_t count = scalars().size();
  self_weight_ = neighborhood.self_weight;
  neighbor_weight_ = 0;
  pulled_scalars_ = {};
  for (std::size_t j = 0; j < neighborhood.payloads.size(); ++j) {
    const double weight = unit ? 1 : neighborhood.weights[j];
    neighbor_weight_ += weight;
    for (std::size_t s = 0; s < count; ++s) {
      pulled_scalars_[s] +=
          weight * (neighborhood.payloads[j].scalars[s] - neighborhood.own.scalars[s]);
    }
  }
}

/// A combination of pulls that have been looked at.
void Mixer::finish_combine(Pass pass) {
  pass.info.self_weight = self_weight_;
  pass.info.neighbor_weight = neighbor_weight_;
  const std::size_t count = scalars().size();
  algorithm_->begin_combine(pass.info, {pass.own.scalars, count}, {pulled_scalars_.data(), count});
  if (pass.next != nullptr) {
    algorithm_->begin_publish(pass.info, scalars());
    std::copy_n(scalars_.begin(), count, pass.next->scalars);
  }
  run(pass);
}

void Mixer::combine(const Neighborhood& neighborhood, const RoundInfo& info,
                    const MutablePayload* next) {
  look_at(neighborhood);
  finish_combine({.kind = Pass::Kind::combine,
                  .info = info,
                  .own = neighborhood.own,
                  .neighborhood = &neighborhood,
                  .next = next});
}

void Mixer::gather(const Neighborhood& neighborhood) {
  look_at(neighborhood);
  if (gathered_.empty()) {
    for (int k = 0; k < algorithm_->declaration().payload_vectors; ++k) {
      gathered_.emplace_back(kept_bytes());
    }
  }
  run({.kind = Pass::Kind::gather,
       .info = {},
       .own = neighborhood.own,
       .neighborhood = &neighborhood});
}

void Mixer::combine_gathered(const Payload& own, const RoundInfo& info,
                             const MutablePayload* next) {
  finish_combine(
      {.kind = Pass::Kind::combine, .info = info, .own = own, .gathered = true, .next = next});
}

void Mixer::combine_with_pull(const Payload& own, const Payload& pull, const RoundInfo& info) {
  run({.kind = Pass::Kind::combine, .info = info, .own = own, .pull = &pull});
}

void Mixer::run(const Pass& pass) {
  std::size_t state_offset = 0, parameter_offset = 0;
  const auto sweep = [&]<class Stored>(const Segment& segment, Stored) {
    SegmentSweep<Stored>(*this, pass, segment, state_offset, parameter_offset).run();
  };
  for (const Segment& segment : layout_.segments()) {
    switch (segment.dtype) {
      case DType::f32:
        sweep(segment, float{});
        break;
      case DType::f64:
        sweep(segment, double{});
        break;
      case DType::bf16:
        sweep(segment, BFloat16{});
        break;
      case DType::f16:
        sweep(segment, Float16{});
        break;
      default:
        fail(ErrorKind::internal, "Mixer: element type {}", name(segment.dtype));
    }
    state_offset += round_up(segment.element_count * sizeof(double), cache_line_bytes);
    if (segment.role == Role::parameter) parameter_offset += segment.element_count;
  }
}

}  // namespace fast::algorithm
