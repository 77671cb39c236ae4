#include "serve/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace fast::serve {
namespace {

using Labels = std::map<std::string, std::string>;
using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets& times_s() {
  static const Buckets all{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
                           5e-2, 0.1,    0.25, 0.5,  1,      2.5,  5,    10};
  return all;
}

const Buckets& sizes() {
  static const Buckets all{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  return all;
}

}  // namespace

struct Metrics::Impl {
  prometheus::Counter& counter(const char* name, const char* help, const Labels& labels) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
  }
  prometheus::Histogram& histogram(const char* name, const char* help, const Labels& labels,
                                   const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels,
                                                                                     buckets);
  }

  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};
  prometheus::Gauge& waiting = prometheus::BuildGauge()
                                   .Name("fast_serve_waiting_samples")
                                   .Help("Samples that wait to be computed")
                                   .Register(registry)
                                   .Add({});
  std::function<std::size_t()> ask_waiting;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::request(const std::string& model, int code, double seconds) {
  impl_
      ->counter("fast_serve_requests_total", "Requests answered",
                {{"model", model}, {"code", std::to_string(code)}})
      .Increment();
  impl_
      ->histogram("fast_serve_request_seconds", "From the whole request to its answer",
                  {{"model", model}}, times_s())
      .Observe(seconds);
}

void Metrics::instances(const std::string& model, const std::string& version, std::size_t samples) {
  impl_
      ->counter("fast_serve_instances_total", "Samples predicted",
                {{"model", model}, {"version", version}})
      .Increment(static_cast<double>(samples));
}

void Metrics::pass(const std::string& version, std::size_t samples, double seconds) {
  const Labels labels{{"version", version}};
  impl_->counter("fast_serve_passes_total", "Forward passes", labels).Increment();
  impl_->histogram("fast_serve_pass_samples", "Samples of a forward pass", labels, sizes())
      .Observe(static_cast<double>(samples));
  impl_->histogram("fast_serve_pass_seconds", "Time of a forward pass", labels, times_s())
      .Observe(seconds);
}

void Metrics::reload(const std::string& model, bool installed) {
  impl_
      ->counter("fast_serve_reloads_total", "Newer files of models",
                {{"model", model}, {"result", installed ? "installed" : "refused"}})
      .Increment();
}

void Metrics::set_waiting(std::function<std::size_t()> waiting) {
  impl_->ask_waiting = std::move(waiting);
}

std::string Metrics::text() const {
  if (impl_->ask_waiting) impl_->waiting.Set(static_cast<double>(impl_->ask_waiting()));
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace fast::serve
