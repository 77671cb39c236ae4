#include "observe/metrics_server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fast/core/deadline.hpp>
#include <fast/observe/prometheus.hpp>
#include <limits>
#include <memory>
#include <string_view>

#include "support/catch.hpp"

using namespace fast;
using observe::MetricsServer;

namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// One that nobody listens on now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(socket, any, length) == 0);
  REQUIRE(getsockname(socket, any, &length) == 0);
  close(socket);
  return ntohs(address.sin_port);
}

class Client {
 public:
  explicit Client(int port) {
    const sockaddr_in address = loopback(port);
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(socket_); }

  void send(std::string_view text) const {
    REQUIRE(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }
  /// All that comes until the server closes the connection.
  std::string answer() const {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = recv(socket_, part.data(), part.size(), 0)) > 0;)
      all.append(part.data(), static_cast<std::size_t>(got));
    return all;
  }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

std::string answer_to(int port, std::string_view request) {
  const Client client(port);
  client.send(request);
  return client.answer();
}

/// 127.0.0.2 is this machine too, but another address than 127.0.0.1.
bool answers_at_another_address(int port) {
  sockaddr_in address = loopback(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const bool connected =
      connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(socket);
  return connected;
}

/// The shortest of up to ten times, which `time_s` returns, as soon as one is below `limit_s`: a
/// busy machine makes some longer.
template <class Time>
double least_s(double limit_s, const Time& time_s) {
  double least = std::numeric_limits<double>::infinity();
  for (int tries = 0; tries < 10 && least >= limit_s; ++tries) least = std::min(least, time_s());
  return least;
}

double seconds_since(Clock::time_point began) { return Seconds(Clock::now() - began).count(); }

constexpr char this_host[] = "127.0.0.1";
constexpr std::string_view get = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

}  // namespace

TEST_CASE("a client gets the present text of /metrics, and nothing else") {
  const int port = free_port();
  int asked = 0;
  const MetricsServer server(this_host, port, 0,
                             [&asked] { return "asked " + std::to_string(++asked); });
  const std::string first = answer_to(port, get), second = answer_to(port, get);
  CHECK_THAT(first, ContainsSubstring("200 OK") && ContainsSubstring("asked 1"));
  CHECK_THAT(first, ContainsSubstring("text/plain; version=0.0.4"));
  CHECK_THAT(second, ContainsSubstring("asked 2"));
  CHECK_THAT(answer_to(port, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"), ContainsSubstring("404"));
  CHECK_THAT(answer_to(port, "POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n"),
             ContainsSubstring("405"));
}

TEST_CASE("a text that is longer than the system's buffers comes whole") {
  const int port = free_port();
  const std::string text(std::size_t{8} << 20, 'x');
  const MetricsServer server(this_host, port, 0, [&text] { return text; });
  const std::string answer = answer_to(port, get);
  REQUIRE(answer.size() > text.size());
  CHECK(answer.ends_with(text));
}

TEST_CASE("a client that sends nothing is cut off, and others are answered") {
  const int port = free_port();
  const MetricsServer server(this_host, port, 0, [] { return "here"; });
  const auto waited_s = [&] {
    const Client silent(port);
    const auto began = Clock::now();
    CHECK_THAT(answer_to(port, get), ContainsSubstring("here"));
    return seconds_since(began);
  };
  CHECK(least_s(4, waited_s) < 4);
}

TEST_CASE("the end waits for no client") {
  const auto end_s = [] {
    const int port = free_port();
    auto server = std::make_unique<MetricsServer>(this_host, port, 0, [] { return "here"; });
    const Client slow(port), waiting(port);
    slow.send("GET /metrics HTTP/1.1\r\n");
    waiting.send("GET ");
    const auto began = Clock::now();
    server.reset();
    return seconds_since(began);
  };
  CHECK(least_s(1, end_s) < 1);
}

TEST_CASE("only the address that is given is listened on") {
  const int port = free_port();
  {
    const MetricsServer server(this_host, port, 0, [] { return "here"; });
    CHECK_THAT(answer_to(port, get), ContainsSubstring("here"));
    CHECK_FALSE(answers_at_another_address(port));
  }
  const int other = free_port();  // somebody may have taken the first one
  const MetricsServer all("0.0.0.0", other, 0, [] { return "here"; });
  CHECK_THAT(answer_to(other, get), ContainsSubstring("here"));
  CHECK(answers_at_another_address(other));
}

TEST_CASE("the observer for Prometheus listens on the loopback alone, unless told otherwise") {
  const int port = free_port();
  {
    const auto observer = observe::prometheus(port, 0);
    CHECK_THAT(answer_to(port, get), ContainsSubstring("200 OK"));
    CHECK_FALSE(answers_at_another_address(port));
  }
  const int other = free_port();
  const auto observer = observe::prometheus(other, 0, "0.0.0.0");
  CHECK(answers_at_another_address(other));
}

TEST_CASE("a scalar of another site is a gauge with the site's name as a label") {
  const int port = free_port();
  const auto observer = observe::prometheus(port, 0);
  for (const auto& [name, value] : {std::pair{"site/of/a-b/round", 1.0},
                                    {"site/of/a_b/round", 2.0},
                                    {"site/of/median/age", 3.0},
                                    {"site/median_age", 4.0},
                                    {"site/of/none", 5.0}})
    observer->on_scalar({name, value, 0, 0, Clock::now()});
  const std::string answer = answer_to(port, get);
  for (const char* line : {"fast_scalar_site_of_round{worker=\"0\",site=\"a-b\"} 1\n",
                           "fast_scalar_site_of_round{worker=\"0\",site=\"a_b\"} 2\n",
                           "fast_scalar_site_of_age{worker=\"0\",site=\"median\"} 3\n",
                           "fast_scalar_site_median_age{worker=\"0\"} 4\n",
                           "fast_scalar_site_of_none{worker=\"0\"} 5\n"})
    CHECK_THAT(answer, ContainsSubstring(line));
}

TEST_CASE("the gauges of a site go when it is forgotten, and come back with it") {
  const int port = free_port();
  const auto observer = observe::prometheus(port, 0);
  const auto tell = [&](const char* name, double value) {
    observer->on_scalar({name, value, 0, 0, Clock::now()});
  };
  for (const char* name : {"site/of/a/round", "site/of/b/round", "site/of/a/age"}) tell(name, 1);
  observer->on_site({.kind = SiteEvent::Kind::read, .site = "b"});
  observer->on_site({.kind = SiteEvent::Kind::forgotten, .site = "a"});
  observer->on_site({.kind = SiteEvent::Kind::forgotten, .site = "c"});
  const std::string without = answer_to(port, get);
  CHECK_THAT(without, !ContainsSubstring("site=\"a\""));
  CHECK_THAT(without, ContainsSubstring("fast_scalar_site_of_round{worker=\"0\",site=\"b\"} 1\n"));
  tell("site/of/a/round", 3);
  CHECK_THAT(answer_to(port, get),
             ContainsSubstring("fast_scalar_site_of_round{worker=\"0\",site=\"a\"} 3\n"));
}

TEST_CASE("an address of another machine is refused in one line") {  // 192.0.2.1: of examples
  CHECK_THROWS_WITH(MetricsServer("192.0.2.1", free_port(), 3, [] { return "here"; }),
                    ContainsSubstring("worker 3 cannot listen on 192.0.2.1 port ") &&
                        ContainsSubstring("; choose another port or address"));
}
