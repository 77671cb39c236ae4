#include "combine/block_sources.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

#include "core/stopwatch.hpp"
#include "exchange/shared/seqlock.hpp"

namespace fast::combine {
namespace {

constexpr int most_reads = 3;
constexpr std::size_t part_bytes = std::size_t{1} << 20;  ///< waited for at once

bool is_arriving(const Arrival& arrival) { return is_present(arrival) && arrival.arriving != 0; }

}  // namespace

double weight_of(const algorithm::RuleTraits& traits, const Neighborhood& near, std::size_t j,
                 int k) {
  if (traits.messages.by_edge && near.edges[j] != k) return 0;
  const algorithm::MixingRequirement mixing = traits.topology.mixing;
  const bool alike =
      mixing == algorithm::MixingRequirement::unit || mixing == algorithm::MixingRequirement::tree;
  return alike ? 1 : near.weights[j];
}

double neighbor_weight(const algorithm::RuleTraits& traits, const Neighborhood& near) {
  double sum = near.owed_weight;
  for (std::size_t j = 0; j < near.workers.size(); ++j) {
    double weight = 0;
    for (int k = 0; k < algorithm::max_payload_vectors; ++k)
      weight = std::max(weight, weight_of(traits, near, j, k));
    sum += weight;
  }
  return sum;
}

Neighborhood Neighborhood::none_of(const MixingRow& row, const Payload& own) {
  const Neighborhood none{own, {}, {}, {}, row.self};
  Neighborhood near = none;
  near.shards.assign(row.shards.size(), none);
  return near;
}

void Neighborhood::add(const Arrival& arrival, const MixingRow& row, std::size_t k) {
  const auto add_to = [&](Neighborhood& near, double weight) {
    near.workers.push_back(arrival.worker);
    near.payloads.push_back(arrival.payload);
    near.weights.push_back(weight);
  };
  add_to(*this, row.weights[k]);
  for (std::size_t s = 0; s < shards.size(); ++s)
    if (row.shards[s][k] != 0) add_to(shards[s], row.shards[s][k]);
}

BlockSources::BlockSources(Exchange& exchange, std::vector<Arrival>& arrivals, const MixingRow& row,
                           std::int64_t round, bool exact)
    : exchange_(exchange),
      oldest_(arrivals),
      newest_(arrivals),
      row_(row),
      round_(round),
      exact_(exact),
      arriving_(std::any_of(arrivals.begin(), arrivals.end(), is_arriving)) {
  require(exact || row.shards.empty(), ErrorKind::internal,
          "BlockSources: shards above staleness 0, where a sweep lists its neighbors anew");
  list();
}

/// Results wait in the next slot, which has them as they are. The thread sanitizer does not know
/// the reads of kernels.
bool BlockSources::may_arrive(const ParameterLayout& layout) {
  const auto& segments = layout.segments();
  return !guarded_reads &&
         std::all_of(segments.begin(), segments.end(), [](const Segment& segment) {
           return segment.role == Role::parameter && size_bytes(segment.dtype) >= sizeof(float);
         });
}

void BlockSources::list() {
  near_ = Neighborhood::none_of(row_, exchange_.published());
  for (std::size_t k = 0; k < newest_.size(); ++k)
    if (is_present(newest_[k])) near_.add(newest_[k], row_, k);
}

/// False if a payload does not come.
bool BlockSources::await(std::size_t bytes) {
  if (bytes <= there_ || !comes_) return comes_;
  const Stopwatch watch(waited_s_);
  there_ = bytes == whole_payload ? bytes : round_up(bytes, part_bytes);
  comes_ = std::all_of(newest_.begin(), newest_.end(), [this](Arrival& arrival) {
    return !is_arriving(arrival) || exchange_.await(arrival, there_);
  });
  return comes_;
}

bool BlockSources::is_torn(const Arrival& arrival) const {
  return is_present(arrival) && !exchange_.is_intact(arrival);
}

bool BlockSources::any_torn() const {
  return std::any_of(newest_.begin(), newest_.end(),
                     [this](const Arrival& arrival) { return is_torn(arrival); });
}

/// True if the latest read of a block counts.
bool BlockSources::counts() {
  if (any_torn()) {
    renew(false);
    return false;
  }
  note_whole_block();
  return true;
}

void BlockSources::note_whole_block() {
  begun_ = true;
  reads_ = 1;
}

void BlockSources::renew(bool progressed) {
  if (progressed) note_whole_block();
  const Stopwatch watch(waited_s_);
  ++rejected_;
  std::vector<Arrival> newer;
  if (reads_++ < most_reads) {
    try {
      newer = exchange_.fetch(round_);
    } catch (const std::exception&) {
      met_ = std::current_exception();
      newer.clear();
    }
  }
  const bool again = !newer.empty();
  for (std::size_t k = 0; k < newest_.size(); ++k) {
    if (!is_torn(newest_[k])) continue;
    if (again) newest_[k] = newer[k];
    if (!again) newest_[k].state = Arrival::State::torn;
    if (!begun_) oldest_[k] = newest_[k];
    oldest_[k].state = newest_[k].state;
  }
  list();
}

}  // namespace fast::combine
