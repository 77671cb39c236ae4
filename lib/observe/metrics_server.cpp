#include "observe/metrics_server.hpp"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <thread>
#include <utility>

#include "core/message.hpp"

namespace fast::observe {
namespace {

/// For a request and its answer together.
constexpr Seconds patience{2};
/// How long a wait does not notice the server's end.
constexpr int look_ms = 50;
constexpr int not_allowed = 405;

/// A client's connection, until its deadline or the server's end.
class Client final : public httplib::Stream {
 public:
  Client(int socket, const std::atomic<bool>& ends) : socket_(socket), ends_(ends) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    return wait_for(POLLIN) ? recv(socket_, to, size, MSG_DONTWAIT) : -1;
  }
  ssize_t write(const char* from, size_t size) override {
    return wait_for(POLLOUT) ? send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  /// httplib refuses numbers for which it could not call select(). This class calls poll().
  socket_t socket() const override { return 0; }

 private:
  bool wait_for(short events) const {
    pollfd wanted{socket_, events, 0};
    while (!ends_ && !deadline_.expired()) {
      if (poll(&wanted, 1, look_ms) > 0) return true;
    }
    return false;
  }

  int socket_;
  const std::atomic<bool>& ends_;
  Deadline deadline_{patience};
};

}  // namespace

class MetricsServer::Server final : public httplib::Server {
 public:
  Server(const std::string& address, int port, int worker, Text text) {
    route(std::move(text));
    new_task_queue = [] { return new httplib::ThreadPool(1); };
    set_socket_options([](socket_t socket) {  // not REUSEPORT: a port in use stays its owner's
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    errno = 0;
    const bool is_bound = bind_to_port(address, port);
    require(is_bound, ErrorKind::resource,
            "metrics: worker {} cannot listen on {} port {}{}{}; choose another port or address",
            worker, printable(address), port, errno == 0 ? "" : ": ",
            errno == 0 ? "" : std::strerror(errno));
    thread_ = std::jthread([this] {
      listen_after_bind();
      ended_ = true;
    });
  }
  ~Server() override {
    ends_ = true;
    while (!is_running() && !ended_) std::this_thread::yield();  // else stop() does nothing
    stop();
    thread_.join();
  }

 private:
  void route(Text text) {
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      if (request.method == "GET" || request.method == "HEAD") return HandlerResponse::Unhandled;
      response.status = not_allowed;  // a body is not read
      return HandlerResponse::Handled;
    });
    Get("/metrics", [text = std::move(text)](const httplib::Request&, httplib::Response& response) {
      response.set_content(text(), "text/plain; version=0.0.4");
    });
  }

  bool process_and_close_socket(socket_t socket) override {
    Client client(socket, ends_);
    bool is_closed = false;
    process_request(client, true, is_closed, [](httplib::Request&) {});
    shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  std::atomic<bool> ends_{false}, ended_{false};
  std::jthread thread_;
};

MetricsServer::MetricsServer(const std::string& address, int port, int worker, Text text)
    : server_(std::make_unique<Server>(address, port, worker, std::move(text))) {}
MetricsServer::~MetricsServer() = default;

}  // namespace fast::observe
