#include "train/record/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace fast::train {

namespace {

/// The figures, and then the sums of all measures.
std::string packed(const Report& report) {
  const ReportFigures& figures = report;
  std::string text(reinterpret_cast<const char*>(&figures), sizeof figures);
  for (const auto* measures : {&report.mean_model, &report.replica})
    for (const Measure& measure : *measures)
      text.append(reinterpret_cast<const char*>(measure.sums.data()),
                  measure.sums.size() * sizeof(double));
  return text;
}

/// A worker without test samples of its own has no measures of the mean model: its sums are 0.
Report complete(Report report) {
  if (!report.mean_model.empty()) return report;
  report.mean_model = report.replica;
  for (Measure& measure : report.mean_model)
    std::fill(measure.sums.begin(), measure.sums.end(), 0.0);
  return report;
}

/// `like`: this worker's own, for the names of measures.
Report unpacked(const std::string& text, const Report& like) {
  Report report = like;
  ReportFigures& figures = report;
  const char* at = text.data();
  std::memcpy(&figures, at, sizeof figures);
  at += sizeof figures;
  for (auto* measures : {&report.mean_model, &report.replica})
    for (Measure& measure : *measures) {
      std::memcpy(measure.sums.data(), at, measure.sums.size() * sizeof(double));
      at += measure.sums.size() * sizeof(double);
    }
  return report;
}

/// Of the model that does worst, by each measure.
void add_measures(const std::vector<Report>& reports, Summary& summary) {
  std::vector<Measure> mean;
  for (const Report& report : reports) add(mean, report.mean_model);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double worst = reports.front().replica.at(i).value();
    for (const Report& report : reports) {
      const double value = report.replica.at(i).value();
      if (std::isnan(value)) worst = value;  // it has diverged
      if (std::isnan(worst)) break;
      worst = mean[i].more_is_better() ? std::min(worst, value) : std::max(worst, value);
    }
    summary.measures.push_back({mean[i].name, mean[i].form, mean[i].value(), worst});
  }
}

}  // namespace

std::vector<Report> gather(const Group& group, const Deadline& deadline, const Report& mine) {
  Report own = complete(mine);
  const auto texts = group.all_gather(packed(own), deadline, "Trainer: gathering results");
  const bool alike = std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return text.size() == texts.front().size();
  });
  if (!alike) own.mean_model = own.replica = {};
  std::vector<Report> reports;
  for (const std::string& text : texts) reports.push_back(unpacked(text, own));
  return reports;
}

void add_up(const std::vector<Report>& reports, double test_samples, Summary& summary) {
  const double workers = static_cast<double>(reports.size());
  double longest_s = 0, worst = 1, samples = 0, reads = 0, fresh = 0, sent = 0, held = 0;
  double most_rounds = 0, loss_sum = 0, loss_samples = 0;
  for (const Report& report : reports) {
    longest_s = std::max(longest_s, report.loop_s);
    worst = std::min(worst, report.replica_accuracy);
    samples += report.samples;
    most_rounds = std::max(most_rounds, report.rounds);
    reads += report.reads;
    fresh += report.fresh;
    sent += report.messages_sent;
    held += report.messages_held;
    summary.rejoined += static_cast<std::uint64_t>(report.rejoined);
    summary.healed += static_cast<std::uint64_t>(report.healed);
    summary.wait_fraction += report.wait_s / report.loop_s / workers;
    summary.publish_fraction += report.publish_s / report.loop_s / workers;
    summary.mix_fraction += report.mix_s / report.loop_s / workers;
    summary.bytes_sent_per_worker_per_round += report.bytes / report.rounds / workers;
    summary.test_accuracy_mean_model += report.mean_model_correct / test_samples;
    loss_sum += report.mean_model_loss_sum;
    loss_samples += report.mean_model_samples;
  }
  summary.test_loss_mean_model = loss_sum / loss_samples;
  summary.test_accuracy_worst_worker = worst;
  add_measures(reports, summary);
  summary.samples_per_second = samples / longest_s;
  summary.fresh_fraction = reads > 0 ? fresh / reads : 0;
  summary.sent_fraction = sent + held > 0 ? sent / (sent + held) : 1;
  summary.rounds = static_cast<std::uint64_t>(most_rounds);
  summary.seconds = longest_s;
}

void describe(const Overview& overview, Summary& summary) {
  summary.workers = overview.workers;
  summary.topology = overview.topology;
  summary.spectral_gap = overview.spectrum.gap;
  summary.connected = overview.unconnected.empty();
  summary.exchange = overview.exchange;
  summary.algorithm = overview.algorithm;
  summary.codec = overview.codec;
  summary.staleness = overview.staleness;
}

}  // namespace fast::train
