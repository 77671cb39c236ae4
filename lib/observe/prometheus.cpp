#include <fast/observe/prometheus.hpp>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <cctype>
#include <fast/core/error.hpp>
#include <map>
#include <mutex>

#include "core/site_scalar.hpp"
#include "observe/metrics_server.hpp"

namespace fast::observe {
namespace {

using Labels = std::map<std::string, std::string>;

constexpr std::array phases = {Phase::step, Phase::publish, Phase::wait, Phase::mix, Phase::commit};

std::string metric_name(std::string_view scalar) {
  std::string name = "fast_scalar_";
  for (const char c : scalar) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

/// Of "site/of/oslo/round", the gauge of "site/of/round" has a label: site="oslo".
struct ScalarGauge {
  explicit ScalarGauge(std::string_view name) : scalar(name) {
    const auto other = other_site_scalar(name);
    if (!other) return;
    scalar = std::string(other_site_scalars).append(other->what);
    labels.emplace("site", other->site);
  }
  std::string scalar;
  Labels labels;
};

/// The metrics of one worker.
class Metrics {
  template <class Builder>
  auto& family_of(Builder builder, const std::string& name, const std::string& help) {
    return builder.Name(name).Help(help).Labels(worker_).Register(*registry_);
  }
  template <class Builder, class... Values>
  auto& add(const Builder& builder, const std::string& name, const std::string& help,
            const Values&... values) {
    const std::lock_guard lock(mutex_);
    return family_of(builder, name, help).Add(values...);
  }

 public:
  explicit Metrics(int worker) : worker_{{"worker", std::to_string(worker)}} {
    for (const Phase phase : phases) {
      phases_[static_cast<std::size_t>(phase)] =
          &counter("fast_phase_seconds_total", "Time in each phase of rounds",
                   {{"phase", std::string(name(phase))}});
    }
  }

  prometheus::Counter& phase(Phase phase) { return *phases_[static_cast<std::size_t>(phase)]; }
  prometheus::Counter& counter(const std::string& name, const std::string& help,
                               const Labels& labels = {}) {
    return add(prometheus::BuildCounter(), name, help, labels);
  }

  prometheus::Gauge& gauge(const std::string& name, const std::string& help,
                           const Labels& labels = {}) {
    const std::lock_guard lock(mutex_);
    auto& family = family_of(prometheus::BuildGauge(), name, help);
    prometheus::Gauge& gauge = family.Add(labels);
    if (!labels.empty()) labeled_[labels].insert_or_assign(&family, &gauge);
    return gauge;
  }

  /// The gauges with these labels. Nobody sets one of them meanwhile.
  void remove(const Labels& labels) {
    const std::lock_guard lock(mutex_);
    for (const auto& [family, gauge] : labeled_[labels]) family->Remove(gauge);
    labeled_.erase(labels);
  }

  prometheus::Histogram& ages() {
    return add(prometheus::BuildHistogram(), "fast_read_age_rounds",
               "How many rounds behind the combined publications were", Labels(),
               prometheus::Histogram::BucketBoundaries{0, 1, 2, 4, 8, 16, 32});
  }

  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  Labels worker_;
  std::mutex mutex_;
  std::shared_ptr<prometheus::Registry> registry_ =
      std::make_shared<prometheus::Registry>(prometheus::Registry::InsertBehavior::Merge);
  std::array<prometheus::Counter*, phases.size()> phases_{};
  std::map<Labels, std::map<prometheus::Family<prometheus::Gauge>*, prometheus::Gauge*>> labeled_;
};

class Prometheus final : public Observer {
 public:
  Prometheus(int port, int worker, const std::string& address)
      : metrics_(worker), server_(address, port, worker, [registry = metrics_.registry()] {
          return prometheus::TextSerializer().Serialize(registry->Collect());
        }) {}

  void on_phase(const PhaseEvent& event) noexcept override {
    const double took_s = Seconds(event.ended - event.began).count();
    if (event.peer < 0) {
      metrics_.phase(event.phase).Increment(took_s);
      if (event.phase == Phase::step) rounds_.Increment();
      return;
    }
    metrics_
        .counter("fast_wait_seconds_total", "Time waited for single workers",
                 {{"peer", std::to_string(event.peer)}})
        .Increment(took_s);
  }

  void on_message(const MessageEvent& event) noexcept override {
    if (event.kind == MessageEvent::Kind::published) return publications_.Increment();
    (event.fresh ? fresh_reads_ : old_reads_).Increment();
    ages_.Observe(static_cast<double>(event.age));
    if (event.kept < 1) note_clipped(event);
  }

  void on_peer(const PeerEvent& event) noexcept override {
    metrics_
        .counter("fast_peer_events_total", "Workers suspected, returned, rejoined or healed",
                 {{"event", std::string(name(event.kind))}, {"peer", std::to_string(event.peer)}})
        .Increment();
  }

  void on_scalar(const ScalarEvent& event) noexcept override {
    const ScalarGauge gauge(event.name);
    metrics_.gauge(metric_name(gauge.scalar), "The scalar " + gauge.scalar, gauge.labels)
        .Set(event.value);
  }

  void on_site(const SiteEvent& event) noexcept override {
    if (event.kind == SiteEvent::Kind::forgotten) metrics_.remove({{"site", event.site}});
  }

  void on_milestone(const MilestoneEvent& event) noexcept override {
    if (event.kind == MilestoneEvent::Kind::epoch_ended) epoch_.Set(event.epoch + 1);
    if (event.kind == MilestoneEvent::Kind::saved) checkpoints_.Increment();
  }

 private:
  void note_clipped(const MessageEvent& event) {
    const Labels peer{{"peer", std::to_string(event.from)}};
    metrics_
        .counter("fast_clipped_reads_total", "Publications that robust averaging has clipped", peer)
        .Increment();
    metrics_
        .counter("fast_clipped_share_total", "Shares of these that it has left out, added up", peer)
        .Increment(1 - event.kept);
  }

  Metrics metrics_;
  prometheus::Counter& rounds_ = metrics_.counter("fast_rounds_total", "Rounds made");
  prometheus::Counter& publications_ = metrics_.counter("fast_publications_total", "Publications");
  prometheus::Counter& fresh_reads_ = metrics_.counter(
      "fast_reads_total", "Publications of neighbors combined", {{"fresh", "true"}});
  prometheus::Counter& old_reads_ = metrics_.counter(
      "fast_reads_total", "Publications of neighbors combined", {{"fresh", "false"}});
  prometheus::Counter& checkpoints_ = metrics_.counter("fast_checkpoints_total", "Checkpoints");
  prometheus::Gauge& epoch_ = metrics_.gauge("fast_epoch", "Epochs finished");
  prometheus::Histogram& ages_ = metrics_.ages();
  MetricsServer server_;  // last: scrapes end before the metrics go
};

}  // namespace

std::shared_ptr<Observer> prometheus(int port, int worker, const std::string& address) {
  require(port > 0 && port < 65536, ErrorKind::argument,
          "metrics: port {}; a number from 1 to 65535 is required", port);
  return std::make_shared<Prometheus>(port, worker, address);
}

}  // namespace fast::observe
