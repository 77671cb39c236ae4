#include "train/record/run_report.hpp"

#include <algorithm>
#include <cstring>

namespace fast::train {

std::vector<Report> gather(const Group& group, const Deadline& deadline, const Report& mine) {
  const auto all = group.all_gather({reinterpret_cast<const char*>(&mine), sizeof mine}, deadline,
                                    "Trainer: gathering results");
  std::vector<Report> reports(all.size());
  for (std::size_t r = 0; r < all.size(); ++r)
    std::memcpy(&reports[r], all[r].data(), sizeof(Report));
  return reports;
}

void add_up(const std::vector<Report>& reports, double test_samples, Summary& summary) {
  const double workers = static_cast<double>(reports.size());
  double longest_s = 0, worst = 1, samples = 0, reads = 0, fresh = 0, sent = 0, held = 0;
  double most_rounds = 0;
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
    summary.test_loss_mean_model += report.mean_model_loss_sum / test_samples;
  }
  summary.test_accuracy_worst_worker = worst;
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
