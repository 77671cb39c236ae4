#include "worker/model_reader.hpp"

#include <fast/topology/stencil.hpp>

#include <cmath>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;
using worker::ModelReader;

namespace {

using Weights = std::vector<double>;

/// Worker 1 of four, and what the others have published.
struct Reading : Scene {
  explicit Reading(WorkerOptions options = {})
      : Scene(1, 4, stencil::ring(), std::move(options)),
        reader(exchange, peers, mixer, setting.shape) {}

  void publishes(std::size_t worker, double value) {
    peers->weights[worker] = Weights(count, value);
  }
  Weights read(int worker) const {
    const AlignedBuffer packed(mixer.layout().size_bytes());
    if (!reader.read(worker, packed)) return {};
    const double* values = packed.as<double>().data();
    return {values, values + count};
  }
  ModelReader reader;
};

/// A model of which two elements are running statistics. Shows what the test says.
struct ModelWithBuffers {
  explicit ModelWithBuffers(const std::vector<Weights>& published)
      : peers(std::make_shared<testing::FakePeers>(static_cast<int>(published.size()))),
        mixer(ParameterLayout({view_of("weights", std::span(weights)),
                               view_of("statistics", std::span(statistics), Role::buffer)}),
              algorithm::awc().make(), {}, false) {
    const auto& segments = mixer.layout().segments();
    for (std::size_t w = 0; w < published.size(); ++w) {
      Weights packed(mixer.layout().size_bytes() / sizeof(double));
      for (std::size_t e = 0; e < 3; ++e)
        packed[segments[0].offset_bytes / sizeof(double) + e] = published[w][e];
      for (std::size_t e = 0; e < 2; ++e)
        packed[segments[1].offset_bytes / sizeof(double) + e] = published[w][3 + e];
      peers->weights[w] = packed;
    }
  }
  Weights weights = Weights(3), statistics = Weights(2);
  std::shared_ptr<testing::FakePeers> peers;
  combine::HostMixer mixer;
};

}  // namespace

TEST_CASE("a worker's weights are what it has published, or nothing") {
  Reading scene;
  scene.publishes(2, 2.5);
  CHECK(scene.read(2) == Weights(Scene::count, 2.5));
  CHECK(scene.read(3).empty());
}

TEST_CASE("with a codec, weights beside the message are exact, and the message is decoded") {
  WorkerOptions options;
  options.codec = codec::by_name("bf16");
  Reading scene(options);
  const double between = 1 + 1 / 1024.0;  // bf16 has 7 bits
  scene.publishes(2, between);
  scene.peers->found = Snapshot::weights;
  scene.setting.shape.weights_bytes = scene.mixer.layout().size_bytes();
  const ModelReader reader(scene.exchange, scene.peers, scene.mixer, scene.setting.shape);
  const AlignedBuffer packed(scene.mixer.layout().size_bytes());
  REQUIRE(reader.read(2, packed));
  CHECK(packed.as<double>()[4] == between);

  Weights coded(2);  // room for five values of two bytes
  const std::vector<BFloat16> message(Scene::count, to_bfloat16(-1.5F));
  std::memcpy(coded.data(), message.data(), message.size() * sizeof(BFloat16));
  scene.peers->weights[2] = coded;
  scene.peers->found = Snapshot::message;
  REQUIRE(reader.read(2, packed));
  for (std::size_t e = 0; e < Scene::count; ++e) CHECK(packed.as<double>()[e] == -1.5);
}

TEST_CASE("the mean is that of the workers that can be read, and says how many these are") {
  Reading scene;
  scene.publishes(0, 1);
  scene.publishes(1, 2);
  scene.publishes(3, 6);
  Weights mean(Scene::count);
  const auto packed = std::as_writable_bytes(std::span(mean));
  CHECK(scene.reader.mean_of({0, 1}, packed) == 2);
  CHECK(mean == Weights(Scene::count, 1.5));
  CHECK(scene.reader.mean_of({0, 1, 2, 3}, packed) == 3);
  CHECK(mean == Weights(Scene::count, 3));
  CHECK_THROWS_WITH(scene.reader.mean_of({2}, packed),
                    ContainsSubstring("no worker's weights could be read"));
}

TEST_CASE("the distance is the root of the mean squared distance from the mean") {
  Reading scene;
  scene.publishes(0, 0);
  CHECK(scene.reader.distance_among({0}) == 0);
  scene.publishes(1, 3);
  scene.publishes(3, 6);
  // All five elements are 3 away from the mean of 3, 0 away, and 3 away.
  CHECK(scene.reader.distance_among({0, 1, 3}) == Approx(std::sqrt(5 * (9 + 0 + 9) / 3.0)));
  CHECK(scene.reader.distance_among({0, 1, 2, 3}) == Approx(std::sqrt(5 * (9 + 0 + 9) / 3.0)));
}

TEST_CASE("the distance of weights that are not finite is no number") {
  Reading scene;
  scene.publishes(0, 1);
  for (const double value : {std::nan(""), HUGE_VAL}) {
    scene.publishes(1, value);
    CHECK(std::isnan(scene.reader.distance_among({0, 1})));
    CHECK(std::isnan(scene.reader.distance_among({1, 0})));
  }
}

TEST_CASE("the distance of large weights that are close to each other keeps its digits") {
  Reading scene;
  scene.publishes(0, 1e9);
  scene.publishes(1, 1e9 + 1);
  CHECK(scene.reader.distance_among({0, 1}) == Approx(std::sqrt(5 / 4.0)).epsilon(1e-12));
}

TEST_CASE("running statistics have a mean, and do not count in the distance") {
  const ModelWithBuffers model({{1, 1, 1, 10, 20}, {3, 3, 3, 50, 60}});
  testing::FakeExchange exchange(5, false);
  const ModelReader reader(exchange, model.peers, model.mixer,
                           {model.mixer.coded().size_bytes(), 1, 0, 0});
  CHECK(reader.distance_among({0, 1}) == Approx(std::sqrt(3.0)));
  const AlignedBuffer mean(model.mixer.layout().size_bytes());
  reader.mean_of({0, 1}, {mean.data(), mean.size_bytes()});
  model.mixer.layout().scatter(mean.data());
  CHECK(model.weights == Weights(3, 2));
  CHECK(model.statistics == Weights{30, 40});
}

TEST_CASE("the mean in blocks is that of whole models, and so is the distance") {
  Reading scene;
  for (const std::size_t worker : {0, 1, 3}) {
    Weights values(Scene::count);
    for (std::size_t e = 0; e < Scene::count; ++e)
      values[e] = std::sin(static_cast<double>(10 * worker + e));
    scene.peers->weights[worker] = values;
  }
  Weights whole(Scene::count);
  scene.reader.mean_of({0, 1, 2, 3}, std::as_writable_bytes(std::span(whole)));
  const double distance = scene.reader.distance_among({0, 1, 2, 3});
  for (const std::size_t block : {1, 2, 3, 4}) {
    const ModelReader reader(scene.exchange, scene.peers, scene.mixer, scene.setting.shape, 1,
                             block);
    for (const bool replaced : {false, true}) {  // while the parts are read
      scene.peers->replaced = replaced;
      Weights mean(Scene::count);
      CHECK(reader.mean_of({0, 1, 2, 3}, std::as_writable_bytes(std::span(mean))) == 3);
      CHECK(mean == whole);
      CHECK(reader.distance_among({0, 1, 2, 3}) == Approx(distance).epsilon(1e-14));
    }
  }
}

TEST_CASE("the mean of a long model and the distance are the same on any number of threads") {
  constexpr std::size_t count = 30 * ModelReader::on_host + 3;
  Weights weights(count);
  const auto peers = std::make_shared<testing::FakePeers>(4);
  combine::HostMixer mixer(ParameterLayout({view_of("weights", std::span(weights))}),
                           algorithm::awc().make(), {}, false);
  testing::FakeExchange exchange(1, false);
  for (std::size_t w = 0; w < 4; ++w) {
    Weights& published = peers->weights[w].emplace(count);
    for (std::size_t e = 0; e < count; ++e) published[e] = static_cast<double>(e % 1000 + 2 * w);
  }
  for (const int threads : {1, 2, 3}) {
    const ModelReader reader(exchange, peers, mixer, {count * sizeof(double), 1, 0, 0}, 0,
                             ModelReader::on_host, threads);
    Weights mean(count);
    CHECK(reader.mean_of({0, 1, 2, 3}, std::as_writable_bytes(std::span(mean))) == 4);
    std::size_t right = 0;
    for (std::size_t e = 0; e < count; ++e) right += mean[e] == static_cast<double>(e % 1000 + 3);
    CHECK(right == count);
    // All sums are integers, and exact.
    CHECK(reader.distance_among({0, 1, 2, 3}) == std::sqrt(5.0 * count));
  }
}

TEST_CASE("bytes of other workers' models are counted") {
  Reading scene;
  for (const std::size_t worker : {0, 1, 3}) scene.publishes(worker, 1);
  const ModelReader reader(scene.exchange, scene.peers, scene.mixer, scene.setting.shape, 1, 2);
  Weights mean(Scene::count);
  reader.mean_of({0, 1, 3}, std::as_writable_bytes(std::span(mean)));
  CHECK(reader.bytes_read() == 2 * Scene::count * sizeof(double));
}
