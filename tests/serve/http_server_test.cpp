// The server on the network, with several clients.
#include "fast_serve/http_server.hpp"

#include <cstring>
#include <fast/core/error.hpp>
#include <fast/data/load.hpp>
#include <fast/nn/loss.hpp>
#include <filesystem>
#include <thread>

#include "serve/running_server.hpp"

using namespace fast;
using namespace fast::testing;
using namespace std::chrono_literals;

TEST_CASE("each answer has the values of the version that it names, while versions change") {
  Running running;
  running.model.install(version_of(net_model, 0));
  constexpr std::uint64_t versions = 5;
  constexpr int clients = 6, requests = 60;
  std::map<std::string, std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < versions; ++seed) {
    seeds[version_of(net_model, seed)->hash()] = seed;
  }
  std::atomic<int> answered{0}, right{0};
  std::vector<std::jthread> threads;
  for (int c = 0; c < clients; ++c) {
    threads.emplace_back([&, c] {
      auto client = running.client();
      for (int i = 0; i < requests; ++i) {
        const std::size_t count = 1 + static_cast<std::size_t>((c + i) % 4);
        const auto values = random_values(16 * count, static_cast<std::uint64_t>(1000 * c + i));
        const auto reply = client.Post(predict_path, as_bytes_text(values), octets);
        if (!reply || reply->status != 200) continue;
        ++answered;
        const auto seed = seeds.find(reply->get_header_value("X-Model-Version"));
        if (seed == seeds.end() || reply->body.size() != 4 * 5 * count) continue;
        const auto expected = logits_of(net_model, seed->second, values, count);
        std::vector<float> found(5 * count);
        std::memcpy(found.data(), reply->body.data(), reply->body.size());
        bool same = true;
        for (std::size_t k = 0; k < found.size(); ++k) {
          same = same && std::abs(found[k] - expected[k]) < 1e-5;
        }
        right += same ? 1 : 0;
      }
    });
  }
  for (std::uint64_t seed = 1; seed < versions; ++seed) {
    const int until = static_cast<int>(seed) * clients * requests / static_cast<int>(versions + 1);
    while (answered < until) std::this_thread::yield();
    running.model.install(version_of(net_model, seed));
  }
  threads.clear();
  CHECK(answered == clients * requests);
  CHECK(right == clients * requests);
}

TEST_CASE("the end answers what has been accepted, then nothing is listened to") {
  // Requests wait for a batch of 100 that never fills, until the delay: all are in flight.
  Running running({100, 2s, 1});
  running.model.install(version_of(net_model, 1));
  constexpr int clients = 10;
  std::atomic<int> answered{0};
  std::vector<std::jthread> threads;
  const auto values = random_values(16, 1);
  for (int c = 0; c < clients; ++c) {
    threads.emplace_back([&] {
      auto client = running.client();
      const auto reply = client.Post(predict_path, as_bytes_text(values), octets);
      if (reply && reply->status == 200 && reply->get_header_value("Connection") == "close") {
        ++answered;
      }
    });
  }
  const auto all_wait = "fast_serve_waiting_samples 10\n";
  while (running.service.metrics().text().find(all_wait) == std::string::npos) {
    std::this_thread::yield();
  }
  CHECK(answered == 0);
  CHECK(running.server->end(20s) == 0);
  threads.clear();
  CHECK(answered == clients);
  auto late = running.client();
  CHECK_FALSE(late.Get("/healthz"));
}

TEST_CASE("the end cuts requests that wait to be computed when its patience is over") {
  // One sample of a batch of 100 would wait for an hour.
  Running running({100, 3600s, 1});
  running.model.install(version_of(net_model, 1));
  const auto values = random_values(16, 1);
  std::jthread asks([&] { running.client().Post(predict_path, as_bytes_text(values), octets); });
  const auto waits = "fast_serve_waiting_samples 1\n";
  while (running.service.metrics().text().find(waits) == std::string::npos) {
    std::this_thread::yield();
  }
  CHECK(running.server->end(10ms, [&] { running.service.batcher().abandon(); }) == 1);
}

TEST_CASE("a listener that is lost is reported, and the end is not kept by it") {
  Running running({8, 500us, 2}, {}, true);
  running.model.install(version_of(net_model, 1));
  auto idle = running.client();
  REQUIRE(idle.Get("/healthz"));
  // As if the system had taken it away.
  int listeners = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    if (ntohs(address.sin_port) != running.server->port()) continue;
    ++listeners;
    shutdown(fd, SHUT_RDWR);
  }
  REQUIRE(listeners == 1);
  REQUIRE(running.lost.get_future().wait_for(30s) == std::future_status::ready);
  CHECK(running.server->end(20s) == 0);
}

TEST_CASE("the end does not wait for idle connections, and cuts those that never send the rest") {
  Running running;
  running.model.install(version_of(net_model, 1));
  auto idle = running.client();
  REQUIRE(idle.Get("/healthz"));
  const int socket = connected(running.server->port());
  const std::string part =
      "POST /v1/models/m:predict HTTP/1.1\r\nContent-Length: 64\r\n"
      "Content-Type: application/octet-stream\r\n\r\nabc";
  REQUIRE(send(socket, part.data(), part.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(part.size()));
  REQUIRE(idle.Get("/healthz"));
  CHECK(running.server->end(1500ms) == 1);
  close(socket);
}

TEST_CASE("a port that is taken is refused") {
  Running running;
  serve::HttpOptions http;
  http.port = running.server->port();
  CHECK_THROWS_AS(serve::HttpServer(http, [](const serve::Request&) { return serve::Reply{}; }),
                  Error);
}

namespace {

/// A perceptron after so many steps on Fashion-MNIST.
nn::Network<float> trained(const data::Splits& data, std::uint64_t seed, std::size_t steps) {
  nn::Network<float> network(nn::mlp({784, 32, 10}), seed);
  std::vector<float> inputs(64 * 784);
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<std::size_t> indices(64);
    for (std::size_t i = 0; i < 64; ++i) indices[i] = (step * 64 + i) % data.train.size();
    data.train.gather(indices, data.normalization, inputs);
    network.loss_and_gradients({inputs, data.train.labels().subspan(indices[0], 64), {1, 28, 28}});
    for (std::size_t p = 0; p < network.parameter_count(); ++p) {
      network.parameters()[p] -= 0.05F * network.gradients()[p];
    }
  }
  return network;
}

}  // namespace

TEST_CASE("10,000 test images, a new model in between: each is answered once, as offline") {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    WARN("skipped: no Fashion-MNIST (apt-get install dataset-fashion-mnist)");
    return;
  }
  const data::Splits data = data::load("fashion-mnist");
  const auto pixels = std::get<std::span<const std::uint8_t>>(data.test.values());
  const std::size_t images = data.test.size();
  REQUIRE(images == 10000);
  // Offline: the labels that each of the two models gives.
  std::map<std::string, std::vector<int>> offline;
  std::vector<std::shared_ptr<const serve::ModelVersion>> versions;
  for (const std::size_t steps : {50, 300}) {
    nn::Network<float> network = trained(data, steps, steps);
    versions.push_back(std::make_shared<serve::ModelVersion>(
        network.spec(), nn::Shape{1, 28, 28}, all_tensors(network), data.normalization, "trained"));
    std::vector<int>& labels = offline[versions.back()->hash()];
    std::vector<float> inputs(784);
    const std::vector<std::int32_t> any(1);
    for (std::size_t i = 0; i < images; ++i) {
      data.test.gather({&i, 1}, data.normalization, inputs);
      const auto logits = network.forward({inputs, any, {1, 28, 28}});
      labels.push_back(
          static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
  }
  Running running({64, 1ms, 2});
  running.model.install(versions[0]);
  constexpr std::size_t clients = 4, step = 50;
  std::atomic<std::size_t> next{0}, done{0};
  struct Tally {
    std::size_t answered = 0, correct = 0, offline_correct = 0, other_label = 0;
  };
  std::mutex mutex;
  std::map<std::string, Tally> tallies;
  std::vector<std::jthread> threads;
  for (std::size_t c = 0; c < clients; ++c) {
    threads.emplace_back([&] {
      auto client = running.client();
      for (std::size_t first = 0; (first = next.fetch_add(step)) < images; done += step) {
        const std::string body(reinterpret_cast<const char*>(pixels.data()) + first * 784,
                               step * 784);
        const auto reply =
            client.Post((std::string(predict_path) + "?type=u8").c_str(), body, octets);
        if (!reply || reply->status != 200 || reply->body.size() != step * 40) continue;
        std::vector<float> logits(step * 10);
        std::memcpy(logits.data(), reply->body.data(), reply->body.size());
        const std::string version = reply->get_header_value("X-Model-Version");
        const std::lock_guard lock(mutex);
        Tally& tally = tallies[version];
        for (std::size_t i = 0; i < step; ++i) {
          const auto* row = logits.data() + 10 * i;
          const int label = static_cast<int>(std::max_element(row, row + 10) - row);
          const int truth = data.test.labels()[first + i],
                    expected = offline.at(version)[first + i];
          ++tally.answered;
          tally.correct += label == truth ? 1 : 0;
          tally.offline_correct += expected == truth ? 1 : 0;
          tally.other_label += label != expected ? 1 : 0;
        }
      }
    });
  }
  while (done < images / 2) std::this_thread::yield();
  running.model.install(versions[1]);
  threads.clear();
  CHECK(tallies.size() == 2);
  std::size_t answered = 0;
  for (const auto& [version, tally] : tallies) {
    INFO(version << ": " << tally.answered << " images, " << tally.correct << " correct");
    answered += tally.answered;
    CHECK(tally.correct == tally.offline_correct);
    CHECK(tally.other_label == 0);
    CHECK(tally.correct > tally.answered / 2);
  }
  CHECK(answered == images);
}
