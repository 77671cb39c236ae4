// The server on the network: connections, limits, and an end that answers what it has accepted.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "fast_serve/service.hpp"

namespace fast::serve {

struct HttpOptions {
  std::string address = "127.0.0.1";
  int port = 8080;  ///< 0: any that is free
  std::size_t most_request_bytes = std::size_t{16} << 20;
  int connections = 128;  ///< at a time; more wait until one is idle or ends
  /// In which a client must have sent a request. For the answer it has the same time again.
  std::chrono::milliseconds request_patience{30'000};
  /// The same while other connections wait for a thread; every 64 KiB that come add a second.
  std::chrono::milliseconds hurried_patience{2000};
  /// After which a connection without requests is closed.
  std::chrono::milliseconds idle_patience{30'000};
};

class HttpServer {
 public:
  using Answer = std::function<Reply(const Request&)>;
  /// Called by a thread of the server.
  using OnEnd = std::function<void()>;

  /// Listens; accepts no connection yet. `answer` is called from several threads. Throws
  /// Error(resource) when the address or the port cannot be listened on.
  HttpServer(const HttpOptions& options, Answer answer);
  /// As end(0).
  ~HttpServer();

  int port() const;
  /// From now on connections are accepted, by threads of its own. `on_lost` is called when no
  /// more can be accepted, without an end().
  void start(OnEnd on_lost = {});

  /// Accepts the connections that wait, then no more. Answers all requests of which a byte has
  /// arrived, and closes idle connections. What is not answered within `patience` is cut off.
  /// `on_cut` is called then, before the wait for answers that are being computed. Returns the
  /// number of connections that were cut off.
  int end(std::chrono::milliseconds patience, const OnEnd& on_cut = {});

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace fast::serve
