// What the server answers to each request, without the network.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fast_serve/batcher.hpp"
#include "fast_serve/metrics.hpp"
#include "fast_serve/served_model.hpp"

namespace fast::serve {

struct Request {
  std::string method;                        ///< "POST"
  std::string path;                          ///< decoded, without the query
  std::map<std::string, std::string> query;  ///< decoded
  std::string content_type;
  std::string shape, type;  ///< the headers X-Tensor-Shape and X-Tensor-Type
  std::string body;
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};

/// | method | path | answer |
/// |---|---|---|
/// | POST | /v1/models/NAME:predict | predictions |
/// | GET | /v1/models | all models |
/// | GET | /v1/models/NAME | one model: versions, shares, shape of a sample |
/// | GET | /healthz | {"status": "ok"}; 503 while the server ends |
/// | GET | /metrics | text for Prometheus |
///
/// Several threads may call answer().
class Service {
 public:
  struct Limits {
    std::size_t most_instances = 1024;
  };
  Service(const Limits& limits, const BatchOptions& batching);

  Metrics& metrics() { return metrics_; }
  /// Before the first request. Throws Error(argument) when the name is taken or cannot be a part of
  /// a path. The model stays in place.
  ServedModel& add(const std::string& name, std::optional<double> new_share);
  /// Null: there is none.
  ServedModel* find(const std::string& name) const;

  /// Never throws; what is wrong with a request is in the reply.
  Reply answer(const Request& request);
  /// The same of a prediction in two steps, so that one thread has several in work: reads the
  /// request and hands its samples to the batcher. The returned function waits for the reply. It is
  /// called once, before the service ends.
  std::function<Reply()> begin(const Request& request);
  /// Says so at /healthz. Requests are answered as before.
  void announce_end() { ends_ = true; }
  Batcher& batcher() { return batcher_; }

 private:
  struct About;
  struct Prediction;
  Reply guarded(About& about, const std::function<Reply()>& make_reply);
  Reply route(const Request& request, About& about);
  /// `may_compute`: this thread may compute a whole batch itself.
  Prediction begin(ServedModel& model, const Request& request, About& about, bool may_compute);
  Reply finish(Prediction prediction);
  Reply health() const;
  Reply list() const;
  ServedModel& existing(const std::string& name) const;

  const Limits limits_;
  Metrics metrics_;
  std::vector<std::unique_ptr<ServedModel>> models_;
  std::atomic<bool> ends_{false};
  Batcher batcher_;  // last: it tells metrics_
};

}  // namespace fast::serve
