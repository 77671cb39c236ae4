#include "combine/mixer.hpp"

#include <algorithm>
#include <fast/core/error.hpp>

#include "exchange/shared/seqlock.hpp"

namespace fast::combine {

namespace {

codec::CodedLayout coded_layout(const ParameterLayout& layout,
                                const algorithm::Declaration& declared, const codec::Options& codec,
                                bool sums) {
  if (sums) return {layout, codec::Kind::f64};
  if (!declared.sparsity.bounded()) return {layout, codec.kind};
  return {layout, codec::Kind::sparse, declared.sparsity.of(layout.parameter_count())};
}

}  // namespace

Mixer::Mixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
             const codec::Options& codec, bool sums)
    : layout_(std::move(layout)),
      algorithm_(std::move(algorithm)),
      codec_(codec),
      coded_(coded_layout(layout_, algorithm_->declaration(), codec, sums)) {
  const algorithm::Declaration& declared = algorithm_->declaration();
  require(declared.state_vectors <= algorithm::max_state_vectors &&
              declared.payload_vectors <= algorithm::max_payload_vectors &&
              declared.payload_scalars <= algorithm::max_payload_scalars,
          ErrorKind::internal,
          "algorithm {}: {} state vectors, {} payload vectors and {} scalars; at most {}, {} and "
          "{} are supported",
          declared.name, declared.state_vectors, declared.payload_vectors, declared.payload_scalars,
          algorithm::max_state_vectors, algorithm::max_payload_vectors,
          algorithm::max_payload_scalars);
  require(
      !declared.remembers_neighbors ||
          declared.publish_point == algorithm::PublishPoint::after_step,
      ErrorKind::internal,
      "algorithm {}: it remembers its neighbors and publishes before the step; such a rule must "
      "publish after the step",
      declared.name);
  if (sums) {
    sums_ = std::make_unique<RunningSums>(declared.summed_from, declared.payload_vectors,
                                          layout_.parameter_count());
  }
}

void Mixer::rebind(ParameterLayout layout) {
  layout_ = std::move(layout);
  coded_ = coded_layout(layout_, declared(), codec_, sums_ != nullptr);
}

void Mixer::copy_weights_to(std::byte* packed) {
  for (const Segment& s : layout_.segments()) {
    copy(packed + s.offset_bytes, static_cast<const std::byte*>(s.data), s.size_bytes());
  }
  settle();
}

void Mixer::copy_weights_from(const std::byte* packed, const ParameterLayout& to) {
  for (const Segment& s : to.segments()) {
    copy(static_cast<std::byte*>(s.data), packed + s.offset_bytes, s.size_bytes());
  }
  settle();
}

void Mixer::start(bool equal) {
  run({.kind = Pass::Kind::start, .info = {.starts_equal = equal}, .own = {}});
}

void Mixer::restart(double epoch) {
  if (declared().remembers_neighbors) epoch_ = epoch;
  if (sums_) sums_->restart();
  start(false);
}

double Mixer::epoch_of(const Payload& payload) const {
  if (!declared().remembers_neighbors) return 0;
  double room = 0;
  return *reinterpret_cast<const double*>(read_optimistically(
      reinterpret_cast<const std::byte*>(payload.scalars + declared().payload_scalars),
      reinterpret_cast<std::byte*>(&room), sizeof(double)));
}

bool Mixer::begin_publish(const Payload& own, const algorithm::RoundInfo& info) {
  if (declared().surveys) {
    run({.kind = Pass::Kind::survey, .info = info, .own = own});
  }
  return algorithm_->begin_publish(info, scalars());
}

void Mixer::publish(const MutablePayload& next, const algorithm::RoundInfo& info) {
  for (std::size_t s = 0; sums_ && s < scalars().size(); ++s) {
    sums_->own().scalars[s] += scalars_[s];
  }
  write_scalars(next);
  run({.kind = Pass::Kind::publish, .info = info, .own = {}, .next = &next});
}

void Mixer::write_scalars(const MutablePayload& next) {
  const auto& from = sums_ ? sums_->own().scalars : scalars_;
  std::copy_n(from.begin(), scalars().size(), next.scalars);
  if (declared().remembers_neighbors) next.scalars[scalars().size()] = epoch_;
}

void Mixer::publish_weights(const MutablePayload& next, bool as_message) {
  const bool plain = coded_.kind() == codec::Kind::identity;
  if (next.weights != nullptr) copy_weights_to(next.weights);
  if (next.weights != nullptr && !as_message) return;
  if (sums_) write_scalars(next);
  if (plain) {
    copy_weights_to(next.data);
  } else {
    run({.kind = Pass::Kind::weights, .info = {}, .own = {}, .next = &next});
  }
}

void Mixer::look_at(const Neighborhood& neighborhood) {
  const bool unit = declared().mixing == algorithm::Mixing::unit;
  const std::size_t count = scalars().size();
  self_weight_ = neighborhood.self_weight;
  neighbor_weight_ = 0;
  pulled_scalars_ = {};
  for (std::size_t j = 0; j < neighborhood.payloads.size(); ++j) {
    const double weight = unit ? 1 : neighborhood.weights[j];
    neighbor_weight_ += weight;
    RunningSums::Source* source = sums_ ? &sums_->source(neighborhood.workers[j]) : nullptr;
    if (source != nullptr) source->same_epoch = epoch_of(neighborhood.payloads[j]) == epoch_;
    RunningSums::Scalars room;
    const auto* theirs = reinterpret_cast<const double*>(
        read_optimistically(reinterpret_cast<const std::byte*>(neighborhood.payloads[j].scalars),
                            reinterpret_cast<std::byte*>(room.data()), count * sizeof(double)));
    for (std::size_t s = 0; s < count; ++s) {
      double message = theirs[s];
      double own = neighborhood.own.scalars[s];
      if (source != nullptr) {
        source->read.scalars[s] = message;
        message = source->same_epoch ? message - source->taken.scalars[s] : 0;
        own = scalars_[s];
      }
      pulled_scalars_[s] += weight * (message - own);
    }
  }
}

/// A combination of pulls that have been looked at.
void Mixer::finish_combine(Pass pass) {
  pass.info.self_weight = self_weight_;
  pass.info.neighbor_weight = neighbor_weight_;
  const std::size_t count = scalars().size();
  const double* own = sums_ ? scalars_.data() : pass.own.scalars;
  algorithm_->begin_combine(pass.info, {own, count}, {pulled_scalars_.data(), count});
  if (pass.next != nullptr) {
    algorithm_->begin_publish(pass.info, scalars());
    std::copy_n(scalars_.begin(), count, pass.next->scalars);
  }
  run(pass);
}

void Mixer::combine(const Neighborhood& neighborhood, const algorithm::RoundInfo& info,
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
  gathered_from_ = neighborhood.workers;
  run({.kind = Pass::Kind::gather,
       .info = {},
       .own = neighborhood.own,
       .neighborhood = &neighborhood});
}

void Mixer::combine_gathered(const Payload& own, const algorithm::RoundInfo& info,
                             const MutablePayload* next) {
  finish_combine(
      {.kind = Pass::Kind::combine, .info = info, .own = own, .gathered = true, .next = next});
  if (sums_) sums_->take(gathered_from_);
}

void Mixer::combine_with_pull(const Payload& own, const Payload& pull,
                              const algorithm::RoundInfo& info) {
  run({.kind = Pass::Kind::combine, .info = info, .own = own, .pull = &pull});
}

}  // namespace fast::combine
