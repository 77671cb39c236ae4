#include "worker/round.hpp"

#include <algorithm>
#include <utility>

#include "worker/phase_timer.hpp"

namespace fast::worker {
namespace {

bool any_arriving(const std::vector<Arrival>& arrivals) {
  return std::any_of(arrivals.begin(), arrivals.end(),
                     [](const Arrival& arrival) { return arrival.arriving != 0; });
}

}  // namespace

Round::Round(const Context& context, RoundPlan& plan, LagDetector& lag, Publisher& publisher)
    : worker_(context),
      plan_(plan),
      lag_(lag),
      publisher_(publisher),
      combiner_(make_combiner(context)) {}

void Round::begin() {
  if (worker_.setting.before_step() && worker_.setting.exact()) {
    worker_.exchange.begin_fetch(worker_.progress.combinations);
  }
}

void Round::publish_early(const algorithm::RoundInfo& info) {
  publisher_.publish(info);
  worker_.progress.published_early = true;
}

/// A worker that has come back has not published early.
bool Round::run(const algorithm::RoundInfo& info) {
  const bool published = std::exchange(worker_.progress.published_early, false);
  if (!worker_.setting.before_step() && !published) publisher_.publish(info);
  const auto round = plan_.at(info.round);
  std::vector<Arrival> arrivals = fetch(info.round, combiner_->reads_early());
  const bool arriving = any_arriving(arrivals);
  bool made = combine(arrivals, *round, known(info, *round));
  if (!made && arriving) {
    arrivals = fetch(info.round, false);  // whole
    made = combine(arrivals, *round, known(info, *round));
  }
  if (!made) return false;
  count_reads(arrivals, round->row);
  const bool sent = worker_.progress.sent;  // what the neighbors read in this round
  commit(info);
  count_sent(sent, round->edges.destinations.size());
  return true;
}

algorithm::RoundInfo Round::known(algorithm::RoundInfo info, const RoundPlan::Round& round) {
  if (!worker_.setting.traits.topology.needs_sites) return info;
  info.between_sites = round.between_sites;
  info.between_sites_next = plan_.at(info.round + 1)->between_sites;
  return info;
}

std::vector<Arrival> Round::fetch(std::int64_t round, bool early) {
  const PhaseTimer timer(worker_, Phase::wait, worker_.progress.stats.wait_s);
  return early ? worker_.exchange.fetch_early(round) : worker_.exchange.fetch(round);
}

bool Round::combine(std::vector<Arrival>& arrivals, const RoundPlan::Round& round,
                    const algorithm::RoundInfo& info) {
  const bool all_there =
      worker_.setting.exact() && std::all_of(arrivals.begin(), arrivals.end(), is_present);
  if (!all_there && !lag_.keeps_up(arrivals)) return false;
  return combiner_->combine(arrivals, round, info);
}

void Round::commit(const algorithm::RoundInfo& info) {
  const auto at = Clock::now();
  if (worker_.setting.fused()) require_finite(worker_, worker_.mixer.is_finite());
  {
    const PhaseTimer timer(worker_, Phase::commit, worker_.progress.commit_s);
    worker_.exchange.complete(info.round + 1);
    if (worker_.setting.fused()) worker_.exchange.publish(info.round + 1);
  }
  if (worker_.setting.fused()) {
    worker_.report_published(at);
  } else if (worker_.setting.before_step()) {
    publisher_.publish({.round = info.round + 1, .learning_rate = info.learning_rate});
  }
}

void Round::count_reads(const std::vector<Arrival>& arrivals, const MixingRow& row) {
  WorkerStats& stats = worker_.progress.stats;
  for (std::size_t k = 0; k < arrivals.size(); ++k) {
    const Arrival& arrival = arrivals[k];
    if (!is_present(arrival)) {
      ++stats.skipped;
      stats.mean_drift_weight += row.weights[k];
      if (arrival.state == Arrival::State::suspect && worker_.options().on_suspect) {
        worker_.options().on_suspect(arrival.worker);
      }
      continue;
    }
    ++stats.reads;
    if (arrival.fresh) ++stats.fresh_reads;
    const std::int64_t age =
        std::max<std::int64_t>(0, worker_.progress.combinations - arrival.round);
    const auto last = static_cast<std::int64_t>(stats.ages.size()) - 1;
    ++stats.ages[static_cast<std::size_t>(std::min(age, last))];
    if (worker_.options().observer) report_read(arrival, age);
  }
}

void Round::report_read(const Arrival& arrival, std::int64_t age) const {
  worker_.options().observer->on_message({MessageEvent::Kind::read, worker_.rank(), arrival.worker,
                                          arrival.sequence, worker_.progress.stats.rounds, age,
                                          arrival.fresh, Clock::now()});
}

void Round::count_sent(bool sent, std::size_t readers) {
  WorkerStats& stats = worker_.progress.stats;
  if (!sent) {
    stats.messages_held += static_cast<std::int64_t>(readers);
    return;
  }
  stats.messages_sent += static_cast<std::int64_t>(readers);
  stats.bytes_sent +=
      static_cast<double>(readers) * static_cast<double>(worker_.setting.shape.payload_bytes());
}

}  // namespace fast::worker
