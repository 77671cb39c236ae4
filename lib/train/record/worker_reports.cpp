#include "train/record/worker_reports.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace fast::train {

namespace {

using nlohmann::json;

json json_of(const std::vector<Measure>& measures) {
  json all = json::array();
  for (const Measure& measure : measures) all.push_back({measure.name, measure.form, measure.sums});
  return all;
}

std::vector<Measure> measures_in(const json& all) {
  std::vector<Measure> measures;
  for (const json& measure : all) measures.push_back({measure[0], measure[1], measure[2]});
  return measures;
}

json json_of(const WorkerStats& worker) {
  json shares = json::array();
  for (const NeighborShare& of : worker.shares)
    shares.push_back({of.worker, of.reads, of.clipped, of.kept});
  return {worker.wait_s,        worker.publish_s,
          worker.mix_s,         worker.reads,
          worker.fresh_reads,   worker.messages_sent,
          worker.messages_held, worker.rejoined,
          worker.healed,        shares};
}

WorkerStats stats_in(const json& all) {
  WorkerStats worker;
  std::size_t next = 0;
  for (double* seconds : {&worker.wait_s, &worker.publish_s, &worker.mix_s}) *seconds = all[next++];
  for (std::int64_t* count : {&worker.reads, &worker.fresh_reads, &worker.messages_sent,
                              &worker.messages_held, &worker.rejoined, &worker.healed})
    *count = all[next++];
  for (const json& of : all[next]) worker.shares.push_back({of[0], of[1], of[2], of[3]});
  return worker;
}

/// The figures' bytes, then the rest as MessagePack, which has NaN.
std::string packed(const Report& report) {
  const auto& figures = static_cast<const ReportFigures&>(report);
  std::string text(reinterpret_cast<const char*>(&figures), sizeof figures);
  json::to_msgpack(
      json::array({json_of(report.mean_model), json_of(report.replica), json_of(report.worker)}),
      text);
  return text;
}

Report unpacked(const std::string& text) {
  Report report{};
  std::memcpy(static_cast<ReportFigures*>(&report), text.data(), sizeof(ReportFigures));
  const json rest = json::from_msgpack(text.begin() + sizeof(ReportFigures), text.end());
  report.mean_model = measures_in(rest[0]);
  report.replica = measures_in(rest[1]);
  report.worker = stats_in(rest[2]);
  return report;
}

const Measure* find(const std::vector<Measure>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Measure::name);
  return found == all.end() ? nullptr : &*found;
}

/// Each worker's own model has been tested on all samples: all measures that there are, without
/// samples.
std::vector<Measure> zeros_like_replicas(const std::vector<Report>& reports) {
  std::vector<Measure> zeros;
  for (const Report& report : reports) add(zeros, report.replica);
  for (Measure& measure : zeros) std::ranges::fill(measure.sums, 0.0);
  return zeros;
}

/// Whether all measure something or nothing, by the same forms.
bool measure_alike(const std::vector<Report>& reports) {
  std::vector<Measure> all;
  for (const Report& report : reports) {
    if (report.replica.empty() != reports.front().replica.empty()) return false;
    for (const auto* measures : {&report.replica, &report.mean_model}) {
      for (const Measure& measure : *measures) {
        const Measure* known = find(all, measure.name);
        if (known != nullptr && known->form != measure.form) return false;
        if (known == nullptr) all.push_back(measure);
      }
    }
  }
  return true;
}

/// Of the model that does worst.
double worst_of(const std::vector<Report>& reports, const std::string& name) {
  std::optional<double> worst;
  for (const Report& report : reports) {
    const Measure* measure = find(report.replica, name);
    if (measure == nullptr) continue;
    const double value = measure->value();
    if (std::isnan(value)) return value;  // it has diverged
    const bool is_worse = !worst || (measure->more_is_better() ? value < *worst : value > *worst);
    if (is_worse) worst = value;
  }
  return worst.value_or(std::numeric_limits<double>::quiet_NaN());
}

void add_measures(const std::vector<Report>& reports, Summary& summary) {
  for (Measure& mean : zeros_like_replicas(reports)) {
    for (const Report& report : reports) {
      const Measure* part = find(report.mean_model, mean.name);
      if (part != nullptr) mean.add(*part);
    }
    summary.measures.push_back({mean.name, mean.form, mean.value(), worst_of(reports, mean.name)});
  }
}

}  // namespace

std::vector<Report> gather(const Group& group, const Deadline& deadline, const Report& mine) {
  std::vector<Report> reports;
  for (const std::string& text :
       group.all_gather(packed(mine), deadline, "Trainer: gathering results")) {
    reports.push_back(unpacked(text));
  }
  if (measure_alike(reports)) return reports;
  for (Report& report : reports) report.mean_model = report.replica = {};
  return reports;
}

namespace {

/// Of the time of a worker's loop; 0 if it has made no step since this program began.
double share_of_loop(double part_s, const Report& report) {
  return report.samples > 0 ? part_s / report.loop_s : 0;
}

std::optional<double> share(std::int64_t part, std::int64_t of) {
  if (of == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(of);
}

}  // namespace

namespace {

/// By the worker whose publications were read, over its readers.
void add_shares(const std::vector<Report>& reports, std::vector<NeighborShare>& all) {
  std::map<int, NeighborShare> by_worker;
  for (const Report& report : reports) {
    for (const NeighborShare& share : report.worker.shares) {
      NeighborShare& sum = by_worker[share.worker];
      sum.worker = share.worker;
      sum.reads += share.reads;
      sum.clipped += share.clipped;
      sum.kept += static_cast<double>(share.reads) * share.kept;
    }
  }
  for (auto& [worker, sum] : by_worker) {
    sum.kept /= static_cast<double>(sum.reads);
    all.push_back(sum);
  }
}

}  // namespace

void add_up(const std::vector<Report>& reports, double test_samples, Summary& summary) {
  const double workers = static_cast<double>(reports.size());
  double longest_s = 0, worst = 1, samples = 0, loss_sum = 0, loss_samples = 0;
  double most_rounds = 0, most_epochs = 0, reductions = 0;
  WorkerStats all;
  for (const Report& report : reports) {
    const WorkerStats& worker = report.worker;
    longest_s = std::max(longest_s, report.loop_s);
    worst = std::min(worst, report.replica_accuracy);
    samples += report.samples;
    most_rounds = std::max(most_rounds, report.rounds);
    most_epochs = std::max(most_epochs, report.epochs);
    reductions = std::max(reductions, report.reductions);
    all.reads += worker.reads;
    all.fresh_reads += worker.fresh_reads;
    all.messages_sent += worker.messages_sent;
    all.messages_held += worker.messages_held;
    summary.rejoined += static_cast<std::uint64_t>(worker.rejoined);
    summary.healed += static_cast<std::uint64_t>(worker.healed);
    const double wait_s = worker.wait_s + report.reduce_s;
    summary.wait_fraction += share_of_loop(wait_s, report) / workers;
    summary.publish_fraction += share_of_loop(worker.publish_s, report) / workers;
    summary.mix_fraction += share_of_loop(worker.mix_s, report) / workers;
    summary.bytes_sent_per_worker_per_round += report.bytes_per_round / workers;
    summary.test_accuracy_mean_model += report.mean_model_correct / test_samples;
    loss_sum += report.mean_model_loss_sum;
    loss_samples += report.mean_model_samples;
  }
  add_shares(reports, summary.shares);
  summary.test_loss_mean_model = loss_sum / loss_samples;
  summary.test_accuracy_worst_worker = worst;
  add_measures(reports, summary);
  summary.samples_per_second = samples / longest_s;
  summary.fresh_fraction = share(all.fresh_reads, all.reads).value_or(0);
  summary.sent_fraction =
      share(all.messages_sent, all.messages_sent + all.messages_held).value_or(1);
  summary.rounds = static_cast<std::uint64_t>(most_rounds);
  summary.epochs = static_cast<std::uint64_t>(most_epochs);
  summary.lr_reductions = static_cast<std::uint64_t>(reductions);
  summary.seconds = longest_s;
}

void describe(const Overview& overview, Summary& summary) {
  summary.workers = overview.workers;
  summary.topology = overview.topology;
  summary.spectral_gap = overview.in_use().gap;
  summary.lazy_weights = overview.lazy_spectrum.has_value();
  summary.connected = overview.unconnected.empty();
  summary.exchange = overview.exchange;
  summary.algorithm = overview.algorithm;
  summary.codec = overview.codec;
  summary.staleness = overview.staleness;
}

}  // namespace fast::train
