#include "worker/mean_model.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;

TEST_CASE("the mean model is that of the workers that can be read, and says so when some cannot") {
  Scene scene(1, 4, stencil::ring());
  for (const std::size_t worker : {0, 1, 3}) {
    scene.peers->weights[worker] = std::vector<double>(Scene::count, static_cast<double>(worker));
  }
  const worker::ModelReader reader(scene.exchange, scene.peers, scene.mixer, scene.setting.shape);
  const worker::MeanModel mean(scene.context, reader, scene.peers);
  std::vector<double> out(Scene::count);
  mean.read({0, 1}, {view_of("x", std::span(out))});
  CHECK(out == std::vector<double>(Scene::count, 0.5));
  CHECK(scene.said.empty());
  mean.read({0, 1, 2, 3}, std::as_writable_bytes(std::span(out)));
  CHECK(out[0] == Approx(4 / 3.0));
  REQUIRE(scene.said.size() == 1);
  CHECK(scene.said[0].find("3 of 4 workers") != std::string::npos);
}

TEST_CASE("room that is too small for a mean model is refused") {
  Scene scene(1, 3, stencil::ring());
  const worker::ModelReader reader(scene.exchange, scene.peers, scene.mixer, scene.setting.shape);
  std::vector<std::byte> room(Scene::count * sizeof(double) - 1);
  CHECK_THROWS_WITH(
      worker::MeanModel(scene.context, reader, scene.peers).read({0, 1}, std::span(room)),
      ContainsSubstring("are needed"));
}
