#include "train/record/worker_reports.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fast::train {

namespace {

/// Values in a row, as bytes.
class Packer {
 public:
  template <class T>
  void number(const T& value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void measures(const std::vector<Measure>& all) {
    number(all.size());
    for (const Measure& measure : all) {
      number(measure.name.size());
      text_ += measure.name;
      number(measure.form);
      number(measure.sums.size());
      for (const double sum : measure.sums) number(sum);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view text) : rest_(text) {}

  template <class T>
  T number() {
    T value{};
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::vector<Measure> measures() {
    std::vector<Measure> all(number<std::size_t>());
    for (Measure& measure : all) {
      measure.name = bytes(number<std::size_t>());
      measure.form = number<Measure::Form>();
      measure.sums.resize(number<std::size_t>());
      for (double& sum : measure.sums) sum = number<double>();
    }
    return all;
  }

 private:
  std::string_view bytes(std::size_t count) {
    const std::string_view first = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return first;
  }
  std::string_view rest_;
};

std::string packed(const Report& report) {
  Packer packer;
  packer.number(static_cast<const ReportFigures&>(report));
  packer.measures(report.mean_model);
  packer.measures(report.replica);
  return packer.take();
}

Report unpacked(const std::string& text) {
  Unpacker from(text);
  Report report{from.number<ReportFigures>(), {}, {}};
  report.mean_model = from.measures();
  report.replica = from.measures();
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
  for (Measure& measure : zeros) std::fill(measure.sums.begin(), measure.sums.end(), 0.0);
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

}  // namespace

void add_up(const std::vector<Report>& reports, double test_samples, Summary& summary) {
  const double workers = static_cast<double>(reports.size());
  double longest_s = 0, worst = 1, samples = 0, reads = 0, fresh = 0, sent = 0, held = 0;
  double most_rounds = 0, most_epochs = 0, loss_sum = 0, loss_samples = 0;
  for (const Report& report : reports) {
    longest_s = std::max(longest_s, report.loop_s);
    worst = std::min(worst, report.replica_accuracy);
    samples += report.samples;
    most_rounds = std::max(most_rounds, report.rounds);
    most_epochs = std::max(most_epochs, report.epochs);
    reads += report.reads;
    fresh += report.fresh;
    sent += report.messages_sent;
    held += report.messages_held;
    summary.rejoined += static_cast<std::uint64_t>(report.rejoined);
    summary.healed += static_cast<std::uint64_t>(report.healed);
    summary.wait_fraction += share_of_loop(report.wait_s, report) / workers;
    summary.publish_fraction += share_of_loop(report.publish_s, report) / workers;
    summary.mix_fraction += share_of_loop(report.mix_s, report) / workers;
    summary.bytes_sent_per_worker_per_round += report.bytes_per_round / workers;
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
  summary.epochs = static_cast<std::uint64_t>(most_epochs);
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
