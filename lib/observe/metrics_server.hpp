// Serves a text over HTTP, for Prometheus.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace fast::observe {

/// GET /metrics, a client at a time, on a thread of its own. A client that is slow is cut off.
class MetricsServer {
 public:
  using Text = std::function<std::string()>;
  /// Throws Error(resource) when the address or the port cannot be listened on.
  MetricsServer(const std::string& address, int port, int worker, Text text);
  /// Waits for no client.
  ~MetricsServer();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace fast::observe
