#include "fast_serve/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace fast::serve {
namespace {

using Labels = std::map<std::string, std::string>;
using Buckets = prometheus::Histogram::BucketBoundaries;

/// In place of the hash of a version that is no longer served.
constexpr char earlier[] = "earlier";

const Buckets& times_s() {
  static const Buckets all{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
                           5e-2, 0.1,    0.25, 0.5,  1,      2.5,  5,    10};
  return all;
}

const Buckets& sizes() {
  static const Buckets all{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  return all;
}

/// Metrics of one name. Unlike prometheus::Family, it knows its series by their labels, so that
/// they can end.
template <class Metric>
class Series {
 public:
  explicit Series(prometheus::Family<Metric>& family) : family_(family) {}

  template <class... Args>
  Metric& of(const Labels& labels, Args&&... args) {
    Metric*& known = known_[labels];
    if (known == nullptr) known = &family_.Add(labels, std::forward<Args>(args)...);
    return *known;
  }

  /// Ends the series of versions that are not among `served`. `before_end` gets labels and metric.
  template <class F>
  void keep(const std::set<std::string>& served, const F& before_end) {
    std::vector<Labels> ended;
    for (const auto& [labels, metric] : known_) {
      const std::string& version = labels.at("version");
      if (version != earlier && !served.contains(version)) ended.push_back(labels);
    }
    for (const Labels& labels : ended) {
      Metric* metric = known_.at(labels);
      before_end(labels, *metric);
      family_.Remove(metric);
      known_.erase(labels);
    }
  }

 private:
  prometheus::Family<Metric>& family_;
  std::map<Labels, Metric*> known_;
};

using prometheus::Counter, prometheus::Histogram;

/// Adds the counts to those of all versions that were.
void fold(Series<Counter>& series, const std::set<std::string>& served) {
  series.keep(served, [&](Labels labels, const Counter& ended) {
    labels["version"] = earlier;
    series.of(labels).Increment(ended.Value());
  });
}

}  // namespace

struct Metrics::Impl {
  prometheus::Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<Histogram>& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  std::mutex mutex;
  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};
  Series<Counter> requests{counters("fast_serve_requests_total", "Requests answered")};
  Series<Counter> instances{counters("fast_serve_instances_total", "Samples predicted")};
  Series<Counter> passes{counters("fast_serve_passes_total", "Forward passes")};
  Series<Counter> reloads{counters("fast_serve_reloads_total", "Newer files of models")};
  Series<Counter> messages{counters("fast_serve_stream_messages_total", "Messages of a stream")};
  Series<Counter> repeated{
      counters("fast_serve_stream_repeated_total", "Answers that the stream had already")};
  Series<Histogram> request_seconds{
      histograms("fast_serve_request_seconds", "From the whole request to its answer")};
  Series<Histogram> pass_samples{
      histograms("fast_serve_pass_samples", "Samples of a forward pass")};
  Series<Histogram> pass_seconds{histograms("fast_serve_pass_seconds", "Time of a forward pass")};
  prometheus::Gauge& waiting = prometheus::BuildGauge()
                                   .Name("fast_serve_waiting_samples")
                                   .Help("Samples that wait to be computed")
                                   .Register(registry)
                                   .Add({});
  std::function<std::size_t()> ask_waiting;
  std::function<std::set<std::string>()> ask_served;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::request(const std::string& model, int code, double seconds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->requests.of({{"model", model}, {"code", std::to_string(code)}}).Increment();
  impl_->request_seconds.of({{"model", model}}, times_s()).Observe(seconds);
}

void Metrics::instances(const std::string& model, const std::string& version, std::size_t samples) {
  const std::lock_guard lock(impl_->mutex);
  impl_->instances.of({{"model", model}, {"version", version}})
      .Increment(static_cast<double>(samples));
}

void Metrics::pass(const std::string& version, std::size_t samples, double seconds) {
  const std::lock_guard lock(impl_->mutex);
  const Labels labels{{"version", version}};
  impl_->passes.of(labels).Increment();
  impl_->pass_samples.of(labels, sizes()).Observe(static_cast<double>(samples));
  impl_->pass_seconds.of(labels, times_s()).Observe(seconds);
}

void Metrics::reload(const std::string& model, bool installed) {
  end_series();
  const std::lock_guard lock(impl_->mutex);
  impl_->reloads.of({{"model", model}, {"result", installed ? "installed" : "refused"}})
      .Increment();
}

void Metrics::message(const std::string& model, bool answered) {
  const std::lock_guard lock(impl_->mutex);
  impl_->messages.of({{"model", model}, {"result", answered ? "answered" : "refused"}}).Increment();
}

void Metrics::repeated_message(const std::string& model) {
  const std::lock_guard lock(impl_->mutex);
  impl_->repeated.of({{"model", model}}).Increment();
}

void Metrics::set_waiting(std::function<std::size_t()> waiting) {
  impl_->ask_waiting = std::move(waiting);
}

void Metrics::set_served(std::function<std::set<std::string>()> served) {
  impl_->ask_served = std::move(served);
}

/// Of versions that are no longer served, also if nobody asks for the text.
void Metrics::end_series() {
  if (!impl_->ask_served) return;
  const std::set<std::string> served = impl_->ask_served();
  const auto dropped = [](const Labels&, const Histogram&) {};
  const std::lock_guard lock(impl_->mutex);
  fold(impl_->instances, served);
  fold(impl_->passes, served);
  impl_->pass_samples.keep(served, dropped);
  impl_->pass_seconds.keep(served, dropped);
}

std::string Metrics::text() {
  if (impl_->ask_waiting) impl_->waiting.Set(static_cast<double>(impl_->ask_waiting()));
  end_series();
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace fast::serve
