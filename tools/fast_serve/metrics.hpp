// Figures of the server as Prometheus reads them.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace fast::serve {

/// | metric | labels | meaning |
/// |---|---|---|
/// | fast_serve_requests_total | model, code | requests answered |
/// | fast_serve_instances_total | model, version | samples predicted |
/// | fast_serve_passes_total | version | forward passes |
/// | fast_serve_pass_samples | version | histogram: samples of a forward pass |
/// | fast_serve_pass_seconds | version | histogram: time of a forward pass |
/// | fast_serve_request_seconds | model | histogram: from the whole request to its answer |
/// | fast_serve_waiting_samples | | samples that wait to be computed |
/// | fast_serve_reloads_total | model, result | newer files: installed or refused |
/// | fast_serve_stream_messages_total | model, result | messages: answered or refused |
/// | fast_serve_stream_repeated_total | model | answers that the stream had already |
///
/// Series of versions that are no longer served end: their counts go to the version "earlier",
/// their histograms are dropped. Several threads may use it.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  /// `model` is empty for requests to no model.
  void request(const std::string& model, int code, double seconds);
  void instances(const std::string& model, const std::string& version, std::size_t samples);
  void pass(const std::string& version, std::size_t samples, double seconds);
  void reload(const std::string& model, bool installed);
  void message(const std::string& model, bool answered);
  void repeated_message(const std::string& model);
  /// Asked for each text().
  void set_waiting(std::function<std::size_t()> waiting);
  /// The hashes of all versions that are served. Asked for each text().
  void set_served(std::function<std::set<std::string>()> served);

  /// In Prometheus' text format.
  std::string text();

 private:
  void end_series();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::serve
