#include "combine/mixer.hpp"

#include <algorithm>
#include <fast/core/error.hpp>

namespace fast::combine {

namespace {

codec::SelectedShape selected_shape(const algorithm::Selection& selection, codec::Kind code) {
  const auto size = static_cast<std::uint64_t>(selection.size);
  codec::SelectedShape shape;
  const bool runs = selection.kind == algorithm::Selection::Kind::one_of_each_run;
  (runs ? shape.run : shape.parts) = size;
  shape.seed = selection.seed;
  shape.of_changes = selection.of_changes;
  shape.code = codec::code_of_entries(code);
  return shape;
}

codec::CodedLayout coded_layout(const ParameterLayout& layout, const algorithm::RuleTraits& traits,
                                const codec::Options& codec, bool sums) {
  if (sums) return {layout, codec::Kind::f64};
  const algorithm::Selection& selection = traits.messages.selection;
  if (selection.selects()) return {layout, selected_shape(selection, codec.kind)};
  if (!traits.messages.sparsity.bounded()) return {layout, codec.kind};
  return {layout, codec::Kind::sparse, traits.messages.sparsity.of(layout.parameter_count()),
          codec.kind};
}

/// The same algorithm, whose traits mixers can serve.
std::shared_ptr<algorithm::Algorithm> checked(std::shared_ptr<algorithm::Algorithm> algorithm) {
  const algorithm::RuleTraits& traits = algorithm->traits();
  require(traits.memory.vectors <= algorithm::max_state_vectors &&
              traits.messages.vectors <= algorithm::max_payload_vectors &&
              traits.messages.scalars <= algorithm::max_payload_scalars,
          ErrorKind::internal,
          "algorithm {}: {} state vectors, {} payload vectors and {} scalars; at most {}, {} and "
          "{} are supported",
          traits.name, traits.memory.vectors, traits.messages.vectors, traits.messages.scalars,
          algorithm::max_state_vectors, algorithm::max_payload_vectors,
          algorithm::max_payload_scalars);
  const bool is_for_trees = traits.topology.mixing == algorithm::MixingRequirement::tree;
  require(traits.messages.by_edge == is_for_trees &&
              (!is_for_trees || (traits.topology.needs_static &&
                                 traits.messages.scalars <= traits.messages.vectors)),
          ErrorKind::internal,
          "algorithm {}: messages by edge go with MixingRequirement::tree, a static topology, and "
          "no more scalars than vectors",
          traits.name);
  require(
      !traits.memory.remembers_neighbors ||
          traits.timing.publish_point == algorithm::PublishPoint::after_step,
      ErrorKind::internal,
      "algorithm {}: it remembers its neighbors and publishes before the step; such a rule must "
      "publish after the step",
      traits.name);
  const bool may_delay = traits.timing.publish_point == algorithm::PublishPoint::after_step &&
                         traits.topology.scope == algorithm::Scope::neighbors &&
                         traits.timing.average_every == 0;
  require(
      traits.timing.delay == 0 || (may_delay && traits.timing.delay < traits.timing.combine_every),
      ErrorKind::internal,
      "algorithm {}: a delay of {} steps with a combination each {}; only rules that publish "
      "after the step for neighbors have one, and it is shorter",
      traits.name, traits.timing.delay, traits.timing.combine_every);
  return algorithm;
}

}  // namespace

Mixer::Mixer(std::unique_ptr<ModelMemory> memory, std::shared_ptr<algorithm::Algorithm> algorithm,
             const codec::Options& codec, bool sums)
    : memory_(std::move(memory)),
      algorithm_(checked(std::move(algorithm))),
      codec_(codec),
      coded_(coded_layout(memory_->swept(), algorithm_->traits(), codec, sums)),
      sums_(sums ? std::make_unique<RunningSums>(traits().messages.summed_from,
                                                 traits().messages.vectors,
                                                 layout().parameter_count())
                 : nullptr),
      scalars_(traits(), sums_.get()) {}

bool Mixer::has_halves() const {
  return std::ranges::any_of(layout().views(), [](const TensorView& view) {
    return size_bytes(view.dtype) == sizeof(BFloat16);
  });
}

codec::Coder Mixer::make_coder() const {
  return {codec_,
          coded_.kind(),
          traits().messages.vectors,
          !traits().precision.corrects_coding,
          layout().size_bytes(),
          has_halves() ? std::size_t{2} : std::size_t{1}};
}

void Mixer::rebind(ParameterLayout layout) {
  memory_->rebind(std::move(layout));
  coded_ = coded_layout(memory_->swept(), traits(), codec_, sums_ != nullptr);
}

void Mixer::start(bool equal) {
  run({.kind = Pass::Kind::start, .info = {.starts_equal = equal}, .own = {}});
}

void Mixer::restart(double epoch) {
  scalars_.begin(epoch);
  if (sums_) sums_->restart();
  run({.kind = Pass::Kind::start, .info = {.restarts = true}, .own = {}});
}

bool Mixer::begin_publish(const Payload& own, const algorithm::RoundInfo& info) {
  if (traits().messages.surveys) {
    run({.kind = Pass::Kind::survey, .info = info, .own = own});
  }
  return algorithm_->begin_publish(info, scalars_.own());
}

void Mixer::publish(const MutablePayload& next, const algorithm::RoundInfo& info) {
  scalars_.add_to_sums();
  scalars_.write(next);
  run({.kind = Pass::Kind::publish, .info = info, .own = {}, .next = &next});
}

void Mixer::publish_weights(const MutablePayload& next, bool as_message) {
  const bool plain = coded_.kind() == codec::Kind::identity;
  finite_ = memory_->is_finite();
  if (!finite_) return;
  if (next.weights != nullptr) memory_->copy_weights_to(next.weights);
  if (next.weights != nullptr && !as_message) return;
  if (sums_) scalars_.write(next);
  if (plain) {
    memory_->copy_weights_to(next.data);
  } else {
    run({.kind = Pass::Kind::weights, .info = {}, .own = {}, .next = &next});
  }
}

void Mixer::look_at(const Neighborhood& neighborhood) {
  self_weight_ = neighborhood.self_weight;
  neighbor_weight_ = neighbor_weight(traits(), neighborhood);
  edge_weight_ = {};
  for (std::size_t j = 0; j < neighborhood.workers.size(); ++j)
    for (std::size_t k = 0; k < edge_weight_.size(); ++k)
      edge_weight_[k] += weight_of(traits(), neighborhood, j, static_cast<int>(k));
  if (scalars_.count() > 0) scalars_.look_at(neighborhood);
}

/// A combination of pulls that have been looked at.
void Mixer::finish_combine(Pass pass) {
  pass.info.self_weight = self_weight_;
  pass.info.neighbor_weight = neighbor_weight_;
  std::ranges::copy(edge_weight_, pass.info.edge_weight);
  algorithm_->begin_combine(pass.info, scalars_.base(pass.own), scalars_.pulled());
  if (pass.next != nullptr) {
    algorithm_->begin_publish(pass.info, scalars_.own());
    if (scalars_.count() > 0) scalars_.write(*pass.next);
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

bool Mixer::combine(BlockSources& sources, const algorithm::RoundInfo& info,
                    const MutablePayload* next) {
  const Neighborhood& neighborhood = sources.neighborhood();
  look_at(neighborhood);
  finish_combine({.kind = Pass::Kind::combine,
                  .info = info,
                  .own = neighborhood.own,
                  .neighborhood = &neighborhood,
                  .sources = &sources,
                  .next = next});
  if (!sources.are_whole()) return false;
  if (sources.are_arriving()) layout().scatter(next->data);
  return true;
}

void Mixer::gather(const Neighborhood& neighborhood) {
  look_at(neighborhood);
  gathered_from_ = neighborhood.workers;
  run({.kind = Pass::Kind::gather,
       .info = {},
       .own = neighborhood.own,
       .neighborhood = &neighborhood});
}

SquaredDistances Mixer::measure(const Neighborhood& neighborhood) {
  SquaredDistances found;
  found.parameters.resize(neighborhood.payloads.size());
  found.buffers.resize(neighborhood.payloads.size());
  run({.kind = Pass::Kind::measure,
       .info = {},
       .own = neighborhood.own,
       .neighborhood = &neighborhood,
       .distances = &found});
  return found;
}

std::uint64_t Mixer::elements() const {
  std::uint64_t count = 0;
  for (const Segment& segment : layout().segments()) count += segment.element_count;
  return count;
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
