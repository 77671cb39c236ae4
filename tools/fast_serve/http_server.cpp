#include "fast_serve/http_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fast/core/error.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "core/message.hpp"
#include "core/text.hpp"
#include "fast_serve/answer.hpp"
#include "fast_serve/connection.hpp"
#include "fast_serve/request_parser.hpp"

namespace fast::serve {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t longest_path = 1024, header_bytes = std::size_t{64} << 10;
/// Clients that connect at the same moment. The system resets some connections of more.
constexpr int most_new_connections = 1024;
/// An idle connection ends after this time if others wait, or if the server ends.
constexpr milliseconds short_patience{200};

/// Threads for connections, and how many connections wait for one.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  ConnectionThreads(int threads, std::atomic<int>& waiting, std::function<void()> on_shutdown)
      : waiting_(waiting),
        on_shutdown_(std::move(on_shutdown)),
        pool_(static_cast<std::size_t>(threads)) {}
  void enqueue(std::function<void()> task) override {
    ++waiting_;
    pool_.enqueue([this, task = std::move(task)] {
      --waiting_;
      task();
    });
  }
  /// httplib calls this when it accepts no more connections.
  void shutdown() override {
    on_shutdown_();
    pool_.shutdown();
  }

 private:
  std::atomic<int>& waiting_;
  std::function<void()> on_shutdown_;
  httplib::ThreadPool pool_;
};

bool has_body(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") ||
         (request.has_header("Content-Length") &&
          request.get_header_value("Content-Length") != "0");
}

bool takes_body(const std::string& method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

/// In small or capital letters.
bool is_word(const std::string& text, std::string_view word) {
  return in_small_letters(text) == word;
}

std::optional<std::uint64_t> number_in(const std::string& digits) {
  const bool good =
      !digits.empty() && digits.size() <= 18 &&
      std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; });
  return good ? std::optional(std::stoull(digits)) : std::nullopt;
}

/// Why the body of a request is not read. The connection ends then: where the next request would
/// begin is not known.
std::optional<Refusal> fault_of_length(const httplib::Request& request, std::size_t most_bytes) {
  const bool is_chunked = request.has_header("Transfer-Encoding");
  const std::size_t lengths = request.get_header_value_count("Content-Length");
  if (lengths > 1 || (is_chunked && lengths > 0)) {
    return Refusal(400, "the request gives its length more than once");
  }
  if (request.get_header_value_count("Transfer-Encoding") > 1 ||
      (is_chunked && !is_word(request.get_header_value("Transfer-Encoding"), "chunked"))) {
    return Refusal(501, "the transfer encoding is unknown; send the body as it is, or chunked");
  }
  if (!is_chunked && lengths == 0) {
    if (!takes_body(request.method)) return std::nullopt;
    return Refusal(411, "the request has no Content-Length");
  }
  if (is_chunked) return std::nullopt;
  const auto length = number_in(request.get_header_value("Content-Length"));
  if (!length) return Refusal(400, "the Content-Length cannot be read");
  if (*length <= most_bytes) return std::nullopt;
  return Refusal(413, fmt::format("the body has {} bytes; {} at most are taken "
                                  "(--max-request-bytes), send it in parts",
                                  *length, most_bytes));
}

std::optional<Refusal> fault_of(const httplib::Request& request, std::size_t most_bytes) {
  if (request.path.size() > longest_path) return Refusal(414, "the path is too long");
  if (auto fault = fault_of_length(request, most_bytes)) return fault;
  if (has_body(request) && !takes_body(request.method)) {
    return Refusal(400, fmt::format("a {} request takes no body", printable(request.method)));
  }
  const std::string encoding = request.get_header_value("Content-Encoding");
  if (!encoding.empty() && encoding != "identity") {
    return Refusal(415, "the body is compressed; send it as it is");
  }
  if (request.get_header_value("Content-Type").starts_with("multipart/")) {
    return Refusal(415,
                   "the content type is a form; send application/json or "
                   "application/octet-stream");
  }
  return std::nullopt;
}

Request request_of(const httplib::Request& from, std::string body) {
  Request request{from.method,
                  from.path,
                  {},
                  from.get_header_value("Content-Type"),
                  from.get_header_value("X-Tensor-Shape"),
                  from.get_header_value("X-Tensor-Type"),
                  std::move(body)};
  for (const auto& [name, value] : from.params) request.query.emplace(name, value);
  return request;
}

void put(Reply reply, httplib::Response& response) {
  response.status = reply.status;
  for (const auto& [name, value] : reply.headers) response.set_header(name, value);
  response.set_header("Content-Type", reply.content_type);
  response.body = std::move(reply.body);
}

void put(const Refusal& refusal, httplib::Response& response) {
  put({.status = refusal.status(), .body = error_answer(refusal.what())}, response);
}

/// Of the request that this thread answers: its connection ends after the answer.
thread_local bool is_last_answer = false;

}  // namespace

class HttpServer::Server final : public httplib::Server {
 public:
  Server(const HttpOptions& options, Answer answer)
      : options_(options), answer_(std::move(answer)) {
    route();
    listen_at();
  }
  ~Server() override {
    if (!thread_.joinable()) ::close(svr_sock_);
  }

  int port() const { return port_; }

  void start(OnEnd on_lost) {
    on_lost_ = std::move(on_lost);
    thread_ = std::thread([this] {
      listen_after_bind();
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
      changed_.notify_all();
    });
  }

  int end(milliseconds patience, const OnEnd& on_cut) {
    if (!thread_.joinable()) return 0;
    const auto deadline = Connection::Clock::now() + patience;
    ends_ = true;
    if (!is_lost_) {
      accept_the_rest(deadline);
      ::shutdown(svr_sock_, SHUT_RDWR);  // accept() fails, and httplib leaves its loop
    }
    int cut = 0;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_until(lock, deadline, [this] { return has_ended_; })) {
        cut = static_cast<int>(sockets_.size());
        for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
        cuts_ = true;
      }
    }
    if (cuts_ && on_cut) on_cut();
    thread_.join();
    thread_ = {};
    return cut;
  }

 private:
  void route() {
    new_task_queue = [this] {
      return new ConnectionThreads(options_.connections, waiting_, [this] { accepts_no_more(); });
    };
    set_tcp_nodelay(true);
    set_payload_max_length(options_.most_request_bytes);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      if (const auto fault = fault_of(request, options_.most_request_bytes)) {
        put(*fault, response);
        return HandlerResponse::Handled;
      }
      if (has_body(request)) return HandlerResponse::Unhandled;
      put(answer_(request_of(request, {})), response);
      return HandlerResponse::Handled;
    });
    const auto with_body = [this](const httplib::Request& request, httplib::Response& response,
                                  const httplib::ContentReader& content) {
      read_and_answer(request, response, content);
    };
    constexpr char any_path[] = R"([\s\S]*)";
    Post(any_path, with_body).Put(any_path, with_body).Patch(any_path, with_body);
    set_expect_100_continue_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          const auto fault = fault_of(request, options_.most_request_bytes);
          if (!fault) return 100;
          put(*fault, response);
          return response.status;
        });
    set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
          put(Refusal(500, "the server has failed to answer this request"), response);
        });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      is_last_answer = true;
      put(Refusal(response.status, "the request cannot be read"), response);
    });
    set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      is_last_answer = is_last_answer || ends_;
      if (!is_last_answer) return;
      response.headers.erase("Keep-Alive");
      response.headers.erase("Connection");
      response.set_header("Connection", "close");
    });
  }

  void accepts_no_more() {
    if (ends_) return;
    is_lost_ = true;
    if (on_lost_) on_lost_();
  }

  void read_and_answer(const httplib::Request& request, httplib::Response& response,
                       const httplib::ContentReader& content) const {
    std::string body;
    if (const auto length = number_in(request.get_header_value("Content-Length")))
      body.reserve(std::min<std::size_t>(*length, options_.most_request_bytes));
    bool is_too_long = false;
    const bool is_whole = content([&](const char* data, std::size_t size) {
      is_too_long = size > options_.most_request_bytes - body.size();
      if (!is_too_long) body.append(data, size);
      return !is_too_long;
    });
    if (is_whole) return put(answer_(request_of(request, std::move(body))), response);
    is_last_answer = true;
    put(is_too_long ? Refusal(413, fmt::format("the body has more than {} bytes "
                                               "(--max-request-bytes), send it in parts",
                                               options_.most_request_bytes))
                    : Refusal(400, "the body ends too early"),
        response);
  }

  void listen_at() {
    set_socket_options([](socket_t socket) {  // not REUSEPORT: a port in use stays its owner's
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    errno = 0;
    if (options_.port == 0) {
      port_ = bind_to_any_port(options_.address);
    } else {
      port_ = bind_to_port(options_.address, options_.port) ? options_.port : -1;
    }
    require(port_ > 0, ErrorKind::resource,
            "{} port {} cannot be listened on{}{}; choose another port or address",
            printable(options_.address), options_.port, errno == 0 ? "" : ": ",
            errno == 0 ? "" : std::strerror(errno));
    ::listen(svr_sock_, most_new_connections);  // httplib allows 5
  }

  /// Connections that clients have made and that wait in the system's queue.
  void accept_the_rest(Connection::Clock::time_point deadline) const {
    pollfd listener{svr_sock_, POLLIN, 0};
    const auto last = std::min(deadline, Connection::Clock::now() + milliseconds(1000));
    while (poll(&listener, 1, 0) > 0 && Connection::Clock::now() < last) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  bool process_and_close_socket(socket_t socket) override {
    {
      const std::lock_guard lock(mutex_);
      if (cuts_) return ::close(socket), true;
      sockets_.insert(socket);
    }
    ++active_;
    Connection connection(socket, [this] { return is_full(); });
    bool is_idle = false;
    while (!is_idle) {
      is_idle = !wait_for_request(socket, connection);
      if (!is_idle && !answer_one(connection)) break;
    }
    if (!is_idle) connection.close_gently();  // an answer may still be on its way
    --active_;
    {
      const std::lock_guard lock(mutex_);
      sockets_.erase(socket);
    }
    ::close(socket);
    return true;
  }

  /// Whether connections wait because all threads have one. One that has just come, and that a free
  /// thread takes in a moment, does not.
  bool is_full() const { return waiting_ > 0 && active_ >= options_.connections; }

  /// Whether a byte has arrived.
  bool wait_for_request(int socket, const Connection& connection) const {
    if (connection.has_input()) return true;
    const auto since = Connection::Clock::now();
    for (;;) {
      pollfd wanted{socket, POLLIN, 0};
      const int found = poll(&wanted, 1, ends_ ? 20 : 100);
      if (found > 0) return true;
      if (found < 0 && errno != EINTR) return false;
      const auto idle = Connection::Clock::now() - since;
      const bool hurries = ends_ || is_full();
      if (idle >= (hurries ? short_patience : options_.idle_patience)) return false;
    }
  }

  /// Whether another request may follow.
  bool answer_one(Connection& connection) {
    is_last_answer = false;
    bool is_closed = false;
    connection.begin_request({options_.request_patience, options_.hurried_patience}, header_bytes);
    try {
      const bool is_good =
          process_request(connection, false, is_closed, [&](httplib::Request& request) {
            if (fault_of(request, options_.most_request_bytes)) is_last_answer = true;
            request.ranges.clear();                    // answers are given as a whole
            request.headers.erase("Accept-Encoding");  // and are not compressed
            connection.allow(2 * options_.most_request_bytes + header_bytes);
          });
      return connection.flush() && is_good && !is_closed && !is_last_answer;
    } catch (const std::exception&) {
      return false;
    }
  }

  const HttpOptions options_;
  const Answer answer_;
  int port_ = -1;
  std::atomic<bool> ends_{false}, is_lost_{false};
  OnEnd on_lost_;
  std::atomic<int> waiting_{0}, active_{0};  ///< connections
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false, cuts_ = false;
  std::set<int> sockets_;
};

HttpServer::HttpServer(const HttpOptions& options, Answer answer)
    : server_(std::make_unique<Server>(options, std::move(answer))) {}
HttpServer::~HttpServer() { end(milliseconds(0)); }
int HttpServer::port() const { return server_->port(); }
void HttpServer::start(OnEnd on_lost) { server_->start(std::move(on_lost)); }
int HttpServer::end(milliseconds patience, const OnEnd& on_cut) {
  return server_->end(patience, on_cut);
}

}  // namespace fast::serve
