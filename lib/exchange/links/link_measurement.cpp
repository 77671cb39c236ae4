#include "exchange/links/link_measurement.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/numbers.hpp"

namespace fast::exchange {
namespace {

/// One place stays, the others turn. With an odd number of hosts, one place is empty.
HostPairs round_of_tournament(int hosts, int round) {
  const int places = hosts + hosts % 2, turning = places - 1;
  const auto add = [&](HostPairs& pairs, int a, int b) {
    if (a < hosts && b < hosts) pairs.emplace_back(std::min(a, b), std::max(a, b));
  };
  HostPairs pairs;
  add(pairs, turning, round);
  for (int k = 1; k < places / 2; ++k) {
    add(pairs, (round + k) % turning, (round - k + turning) % turning);
  }
  return pairs;
}

}  // namespace

std::vector<HostPairs> host_pairs(int hosts, int most_rounds) {
  std::vector<HostPairs> rounds;
  if (hosts < 2) return rounds;
  const int all = hosts + hosts % 2 - 1, wanted = std::min(all, most_rounds);
  for (int k = 0; k < wanted; ++k) {
    const auto spread = static_cast<int>(static_cast<long long>(k) * all / wanted);
    rounds.push_back(round_of_tournament(hosts, spread));
  }
  return rounds;
}

namespace {

constexpr int most_rounds = 8;
constexpr std::size_t first_size_bytes = std::size_t{1} << 16;
constexpr std::size_t least_size_bytes = first_size_bytes / 4;
constexpr std::size_t most_size_bytes = std::size_t{1} << 24;
constexpr double latency_share = 0.25, message_share = 0.4;  ///< of the budget
constexpr int usual_pings = 15, least_pings = 4;
constexpr int usual_messages = 5;  ///< the first one does not count

/// The first message of a flow opens connections and windows.
std::vector<double> warm(const std::vector<double>& seconds) {
  return {seconds.begin() + (seconds.size() > 1 ? 1 : 0), seconds.end()};
}

double warm_median(const std::vector<double>& seconds) { return median(warm(seconds)); }

/// Of a message whose answer came after so long: bytes per second without the latency.
double rate(std::size_t size_bytes, double seconds, double latency_s) {
  const double on_the_way_s = std::max(seconds - 2 * latency_s, 0.1 * seconds);
  return static_cast<double>(size_bytes) / std::max(on_the_way_s, 1e-9);
}

}  // namespace

LinkMeasurement::LinkMeasurement(LinkTrials& trials, const std::vector<int>& host_of_rank,
                                 const std::vector<std::string>& name_of_rank,
                                 const LinkMeasureOptions& options)
    : trials_(trials), options_(options), names_(name_of_rank) {
  std::map<int, int> index;
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const auto [found, is_new] = index.emplace(host_of_rank[rank], static_cast<int>(index.size()));
    if (is_new) ranks_.emplace_back();
    host_.push_back(found->second);
    ranks_[static_cast<std::size_t>(found->second)].push_back(static_cast<int>(rank));
  }
  rounds_ = host_pairs(static_cast<int>(ranks_.size()), most_rounds);
}

MeasuredLinks LinkMeasurement::measure() {
  measure_memory();
  if (!rounds_.empty()) {
    measure_latencies();
    find_message_size();
    measure_bandwidths();
  }
  return figures();
}

std::vector<std::vector<double>> LinkMeasurement::run(const std::vector<Flow>& flows, int count) {
  TrialTimes times = trials_.run(flows, count);
  spent_s_ += times.total_s;
  return std::move(times.seconds);
}

bool LinkMeasurement::has_time(double share) const {
  return spent_s_ < share * options_.budget.count();
}

/// One pair of ranks on each host.
void LinkMeasurement::measure_memory() {
  std::vector<Flow> flows;
  for (const std::vector<int>& ranks : ranks_) {
    if (ranks.size() > 1) flows.push_back({ranks[0], ranks[1], 1});
  }
  if (flows.empty()) return;
  std::vector<double> latencies, rates;
  for (const auto& seconds : run(flows, usual_pings)) latencies.push_back(warm_median(seconds) / 2);
  const std::size_t size_bytes = 16 * first_size_bytes;
  for (Flow& flow : flows) flow.size_bytes = size_bytes;
  const auto times = run(flows, 2 * usual_messages);
  for (std::size_t k = 0; k < times.size(); ++k) {
    rates.push_back(rate(size_bytes, warm_median(times[k]), latencies[k]));
  }
  found_.memory_bandwidth = median(rates);
  if (!rounds_.empty()) return;
  found_.latency_s = median(latencies);
  found_.lone_bandwidth = found_.bandwidth = found_.memory_bandwidth;
}

void LinkMeasurement::measure_latencies() {
  const double round_s =
      latency_share * options_.budget.count() / static_cast<double>(rounds_.size());
  int pings = usual_pings;
  for (const HostPairs& pairs : rounds_) {
    measure_latencies_of(pairs, pings);
    double longest_s = 1e-9;
    for (const Pair& pair : pairs_) longest_s = std::max(longest_s, 2 * pair.latency_s);
    // So many pings that the latencies of all rounds fit in their share.
    pings = static_cast<int>(std::clamp<double>(round_s / longest_s, least_pings, usual_pings));
    if (!has_time(latency_share)) break;
  }
  std::vector<double> latencies;
  for (const Pair& pair : pairs_) latencies.push_back(pair.latency_s);
  found_.latency_s = median(latencies);
}

/// And what a short message says of the bandwidth, so that no longer one takes too long.
void LinkMeasurement::measure_latencies_of(const HostPairs& pairs, int pings) {
  const auto empty = run(first_ranks(pairs, 1), pings);
  const auto full = run(first_ranks(pairs, first_size_bytes), 2);
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    Pair pair{pairs[k].first, pairs[k].second, warm_median(empty[k]) / 2, 0, 0};
    pair.rough_rate = rate(first_size_bytes, warm_median(full[k]), pair.latency_s);
    pairs_.push_back(pair);
  }
}

/// Longer and longer messages of the first pairs, until their time is long beside the latency.
void LinkMeasurement::find_message_size() {
  const double budget_s = options_.budget.count();
  const double least_s = std::clamp(budget_s / 100, 0.005, 0.1);
  target_s_ = std::clamp(10 * found_.latency_s, least_s, budget_s / 20);
  for (size_bytes_ = first_size_bytes;; size_bytes_ *= 4) {
    std::vector<double> rates, seconds;
    for (const auto& times : run(first_ranks(rounds_.front(), size_bytes_), 3)) {
      seconds.push_back(warm_median(times));
      rates.push_back(rate(size_bytes_, seconds.back(), found_.latency_s));
    }
    found_.lone_bandwidth = median(rates);
    const double longest_s = *std::ranges::max_element(seconds);
    const double on_the_way_s = longest_s - 2 * found_.latency_s;
    if (on_the_way_s >= target_s_ || size_bytes_ >= most_size_bytes || !has_time(message_share)) {
      return;
    }
  }
}

/// A short message may look slower than longer ones are, while a connection begins.
std::size_t LinkMeasurement::size_for(const Pair& pair) const {
  const double by_rate = 4 * pair.rough_rate * target_s_;
  return std::min(size_bytes_, static_cast<std::size_t>(std::min(by_rate, 1e12)));
}

void LinkMeasurement::measure_bandwidths() {
  for (const HostPairs& pairs : rounds_) {
    const std::vector<Flow> flows = all_ranks(pairs);
    add_bandwidths(pairs, flows, run(flows, usual_messages));
    if (!has_time(1)) return;
  }
}

std::vector<Flow> LinkMeasurement::first_ranks(const HostPairs& pairs,
                                               std::size_t size_bytes) const {
  std::vector<Flow> flows;
  for (const auto& [first, second] : pairs) {
    flows.push_back({ranks_[static_cast<std::size_t>(first)].front(),
                     ranks_[static_cast<std::size_t>(second)].front(), size_bytes});
  }
  return flows;
}

/// In both directions. The messages of a host have as many bytes together as one rank's before.
std::vector<Flow> LinkMeasurement::all_ranks(const HostPairs& pairs) {
  std::vector<Flow> flows;
  for (const auto& [first, second] : pairs) {
    const std::vector<int>& here = ranks_[static_cast<std::size_t>(first)];
    const std::vector<int>& there = ranks_[static_cast<std::size_t>(second)];
    const std::size_t lanes = std::min(here.size(), there.size());
    const std::size_t all_bytes = size_for(pair_of(first, second));
    const std::size_t size_bytes = std::max(all_bytes / lanes, least_size_bytes);
    for (std::size_t k = 0; k < lanes; ++k) {
      flows.push_back({here[k], there[k], size_bytes});
      flows.push_back({there[k], here[k], size_bytes});
    }
  }
  return flows;
}

/// A pair's bandwidth is that of its slower direction.
void LinkMeasurement::add_bandwidths(const HostPairs& pairs, const std::vector<Flow>& flows,
                                     const std::vector<std::vector<double>>& seconds) {
  std::map<std::pair<int, int>, double> sums;  // by the hosts of a direction
  for (std::size_t k = 0; k < flows.size(); ++k) {
    const int from = host_[static_cast<std::size_t>(flows[k].from)];
    const int to = host_[static_cast<std::size_t>(flows[k].to)];
    const double latency_s = pair_of(std::min(from, to), std::max(from, to)).latency_s;
    const double usual_s = warm_median(seconds[k]);
    sums[{from, to}] += rate(flows[k].size_bytes, usual_s, latency_s);
    for (const double each : warm(seconds[k])) {
      deviations_.push_back(std::abs(std::log(std::max(each, 1e-9) / std::max(usual_s, 1e-9))));
    }
  }
  for (const auto& [first, second] : pairs) {
    pair_of(first, second).bandwidth = std::min(sums[{first, second}], sums[{second, first}]);
  }
}

LinkMeasurement::Pair& LinkMeasurement::pair_of(int first, int second) {
  for (Pair& pair : pairs_) {
    if (pair.first == first && pair.second == second) return pair;
  }
  return pairs_.emplace_back(Pair{first, second, found_.latency_s, 0, found_.lone_bandwidth});
}

const std::string& LinkMeasurement::name(int host) const {
  return names_[static_cast<std::size_t>(ranks_[static_cast<std::size_t>(host)].front())];
}

MeasuredLinks LinkMeasurement::figures() const {
  MeasuredLinks figures = found_;
  std::vector<double> rates;
  for (const Pair& pair : pairs_) {
    figures.pairs.push_back({name(pair.first), name(pair.second), pair.latency_s, pair.bandwidth});
    if (pair.bandwidth > 0) rates.push_back(pair.bandwidth);
  }
  if (!rates.empty()) figures.bandwidth = median(rates);
  figures.jitter = sigma_of_median_deviation * median(deviations_);
  figures.seconds = spent_s_;
  return figures;
}

}  // namespace fast::exchange
