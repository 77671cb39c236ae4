// What clients do with their connections: too many, too slow, or no HTTP.
#include <poll.h>

#include <atomic>
#include <thread>

#include "serve/running_server.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("slow clients give way to others") {
  serve::HttpOptions http;
  http.connections = 2;
  http.request_patience = 3600s;
  http.hurried_patience = 50ms;
  Running running({8, 500us, 2}, http);
  running.model.install(version_of(net_model, 1));
  // All threads have a client that begins a request and stops.
  std::vector<int> slow;
  for (const std::string part :
       {"GET /heal", "POST /v1/models/m:predict HTTP/1.1\r\nContent-Length: 64\r\n\r\nabc"}) {
    slow.push_back(connected(running.server->port()));
    REQUIRE(send(slow.back(), part.data(), part.size(), MSG_NOSIGNAL) > 0);
  }
  const auto reply =
      running.client().Post(predict_path, as_bytes_text(random_values(16, 1)), octets);
  REQUIRE(reply);
  CHECK(reply->status == 200);
  for (const int socket : slow) close(socket);
}

TEST_CASE("the end of the server does not wait for idle clients to close their connections") {
  Running running;
  running.model.install(version_of(net_model, 1));
  std::vector<int> idle;
  for (int i = 0; i < 3; ++i) idle.push_back(connected(running.server->port()));
  CHECK(running.server->end(20s) == 0);  // none is cut off
  for (const int socket : idle) close(socket);
}

TEST_CASE("a slow client has its time while no other waits") {
  serve::HttpOptions http;
  http.connections = 1;
  http.hurried_patience = 1ms;
  Running running({8, 500us, 2}, http);
  running.model.install(version_of(net_model, 1));
  const int socket = connected(running.server->port());
  for (const std::string part : {"GET /heal", "thz HTTP/1.1\r\nConnection: ", "close\r\n\r\n"}) {
    REQUIRE(send(socket, part.data(), part.size(), MSG_NOSIGNAL) > 0);
    std::this_thread::sleep_for(20ms);
  }
  char begin[12] = {};
  REQUIRE(recv(socket, begin, sizeof begin, MSG_WAITALL) == sizeof begin);
  CHECK(std::string(begin, sizeof begin) == "HTTP/1.1 200");
  close(socket);
}

TEST_CASE(
    "requests that are no HTTP, or that hide where they end, get an answer or a closed door") {
  serve::HttpOptions http;
  http.most_request_bytes = 1000;
  Running running({8, 500us, 2}, http);
  running.model.install(version_of(net_model, 1));
  const int port = running.server->port();
  const std::string post =
      "POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
  struct Case {
    std::string bytes;
    std::string begins;
  };
  const Case cases[] = {
      {"hello\r\n\r\n", "HTTP/1.1 400"},
      {post + "\r\n", "HTTP/1.1 411"},
      {post + "Content-Length: 5000\r\n\r\n", "HTTP/1.1 413"},
      {post + "Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 413"},
      {post + "Content-Length: -1\r\n\r\n", "HTTP/1.1 400"},
      {post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "HTTP/1.1 400"},
      {post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", "HTTP/1.1 400"},
      {post + "Transfer-Encoding: gzip\r\n\r\n{}", "HTTP/1.1 501"},
      {post + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 415"},
      {post + "Content-Length: 100\r\n\r\n{}", "HTTP/1.1 400"},
      {post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n", "HTTP/1.1 400"},
      {post + "Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'x') +
           "\r\n0\r\n\r\n",
       "HTTP/1.1 413"},
      {post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 400"},
      {"POST /v1/models/m:predict HTTP/1.1\r\nContent-Type: multipart/form-data; "
       "boundary=x\r\nContent-Length: 2\r\n\r\n{}",
       "HTTP/1.1 415"},
      {"GET /" + std::string(2000, 'a') + " HTTP/1.1\r\n\r\n", "HTTP/1.1 414"},
      {"GET /healthz HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 400"},
      {"GET /healthz HTTP/1.1\r\nConnection: close\r\nRange: bytes=0-0\r\n\r\n", "HTTP/1.1 200"},
      {"GET /no HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 404"},
      {"TRACE / HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 "},
      {"GET /%00%ff%0a HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 404"},
      {"GET / HTTP/1.1\r\nX: " + std::string(200000, 'a') + "\r\n\r\n", ""},
      {std::string(100000, 'a'), ""},
      {std::string(1000, '\0'), ""},
  };
  for (const Case& one : cases) {
    INFO(one.bytes.substr(0, 200));
    const std::string reply = conversation(port, one.bytes);
    CHECK(reply.substr(0, one.begins.size()) == one.begins);
    if (!one.begins.empty() && one.begins != "HTTP/1.1 200") {
      CHECK_THAT(reply, ContainsSubstring("\"error\""));
    }
  }
  auto client = running.client();
  CHECK(client.Get("/healthz")->status == 200);
}

TEST_CASE("more connections than threads are all answered") {
  serve::HttpOptions http;
  http.connections = 2;
  Running running({8, 500us, 2}, http);
  running.model.install(version_of(net_model, 1));
  const auto values = as_bytes_text(random_values(16, 1));
  std::atomic<int> answered{0};
  std::vector<std::jthread> threads;
  for (int c = 0; c < 8; ++c) {
    threads.emplace_back([&] {
      auto client = running.client();  // stays open after the answer
      const auto reply = client.Post(predict_path, values, octets);
      answered += reply && reply->status == 200 ? 1 : 0;
      while (answered < 8) std::this_thread::sleep_for(1ms);
    });
  }
  threads.clear();
  CHECK(answered == 8);
}

TEST_CASE("connections that are made while the server accepts none are answered later") {
  serve::HttpOptions http;
  http.port = 0;
  serve::HttpServer server(http, [](const serve::Request&) { return serve::Reply{}; });
  std::vector<int> sockets;
  for (int c = 0; c < 100; ++c) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(sockets.back(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  int made = 0;
  for (const int socket : sockets) {
    pollfd ready{socket, POLLOUT, 0};
    made += poll(&ready, 1, 500) == 1 && (ready.revents & (POLLERR | POLLHUP)) == 0 ? 1 : 0;
  }
  CHECK(made == 100);
  server.start();
  constexpr std::string_view request = "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n";
  for (const int socket : sockets) {
    send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    pollfd ready{socket, POLLIN, 0};
    char first[4]{};
    REQUIRE(poll(&ready, 1, 20'000) == 1);
    CHECK(recv(socket, first, sizeof first, 0) == 4);
    CHECK(std::string_view(first, 4) == "HTTP");
    close(socket);
  }
}
