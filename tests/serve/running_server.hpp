// A server on the loopback for the tests of it, and its clients.
#pragma once

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "fast_serve/http_server.hpp"
#include "serve/models.hpp"
#include "support/catch.hpp"

namespace fast::testing {

using namespace std::chrono_literals;

inline constexpr char octets[] = "application/octet-stream";
inline constexpr char predict_path[] = "/v1/models/m:predict";

struct Running {
  explicit Running(serve::BatchOptions batching = {8, 500us, 2}, serve::HttpOptions http = {},
                   bool may_be_lost = false)
      : service({1024}, batching), model(service.add("m", {})) {
    http.port = 0;
    server = std::make_unique<serve::HttpServer>(
        http, [this](const serve::Request& request) { return service.answer(request); });
    server->start([this, may_be_lost] {
      if (may_be_lost) lost.set_value();
    });
  }
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", server->port());
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
    client.set_read_timeout(30);
    return client;
  }
  serve::Service service;
  serve::ServedModel& model;
  std::promise<void> lost;
  std::unique_ptr<serve::HttpServer> server;
};

inline std::string as_bytes_text(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

inline const nn::ModelSpec net_model = nn::mlp({16, 32, 5});

/// A socket.
inline int connected(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  timeval patience{20, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

/// The bytes that the server sends back before it closes the connection.
inline std::string conversation(int port, const std::string& bytes) {
  const int socket = connected(port);
  send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(socket, SHUT_WR);
  std::string all;
  char part[4096];
  for (ssize_t got = 0; (got = recv(socket, part, sizeof part, 0)) > 0;) {
    all.append(part, static_cast<std::size_t>(got));
  }
  close(socket);
  return all;
}

}  // namespace fast::testing
