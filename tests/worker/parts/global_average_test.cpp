#include "worker/mean_model.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;
using worker::GlobalAverage;
using worker::Publisher;

namespace {

using Doubles = std::vector<double>;

/// Averages with workers that give `others`, the same for every element.
class ScriptedReducer final : public Reducer {
 public:
  explicit ScriptedReducer(Doubles others) : others_(std::move(others)) {}
  void average(std::span<float> values) override { average_of(values); }
  void average(std::span<double> values) override { average_of(values); }

 private:
  template <class T>
  void average_of(std::span<T> values) const {
    for (T& value : values) {
      for (const double other : others_) value += static_cast<T>(other);
      value /= static_cast<T>(others_.size() + 1);
    }
  }
  Doubles others_;
};

WorkerOptions with_rule(algorithm::Rule rule) {
  WorkerOptions options;
  options.algorithm = std::move(rule);
  return options;
}

struct ExactBeforeStep {
  algorithm::RuleTraits traits() const {
    return {
        .name = "exact before step", .summary = "x", .source = "x", .timing = {.average_every = 6}};
  }
  template <class T>
  void publish(const algorithm::Block<T>& block) const {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const algorithm::Block<T>& block) const {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

/// Worker 1 of three, whose weights are 1 at first.
struct Averaging : Scene {
  Averaging(algorithm::Rule rule, Doubles others)
      : Scene(1, 3, stencil::ring(), with_rule(std::move(rule))),
        publisher(context),
        average(context, std::make_unique<ScriptedReducer>(std::move(others))) {
    mixer.start(true);
    publisher.begin(0);
  }
  Publisher publisher;
  GlobalAverage average;
};

}  // namespace

TEST_CASE("a rule of all workers adds the mean of their steps to where the worker stood") {
  Averaging worker(algorithm::allreduce(), {4, 6});
  worker.x.assign(Scene::count, 3);  // a step of 2
  worker.average.combine({.round = 0}, worker.publisher);
  CHECK(worker.x == Doubles(Scene::count, 1 + (2 + 4 + 6) / 3.0));
  CHECK(worker.exchange.newest().values == worker.x);
  CHECK(worker.exchange.rounds.back() == 1);
  CHECK(worker.exchange.completed == 1);
}

TEST_CASE("an exact average makes the weights the mean of all workers' weights") {
  Averaging worker(algorithm::gossip_pga(), {4, 10});
  worker.average.average({.round = 5}, worker.publisher);
  CHECK(worker.x == Doubles(Scene::count, (1 + 4 + 10) / 3.0));
  CHECK(worker.exchange.newest().values == worker.x);
  CHECK(worker.exchange.rounds.back() == worker::no_round);  // no neighbor's message
  CHECK(worker.exchange.completed == 6);
}

TEST_CASE("after an exact average, a rule that publishes before the step does so for its readers") {
  Averaging worker(algorithm::elementwise(ExactBeforeStep{}), {4, 10});
  worker.average.average({.round = 5}, worker.publisher);
  CHECK(worker.x == Doubles(Scene::count, (1 + 4 + 10) / 3.0));
  CHECK(worker.exchange.newest().values == worker.x);
  CHECK(worker.exchange.rounds.back() == 6);
  CHECK(worker.exchange.completed == 6);
}

TEST_CASE("an average counts twice the model's bytes but for the worker's own part") {
  Averaging worker(algorithm::allreduce(), {4, 6});
  worker.progress.stats.bytes_sent = 0;
  worker.average.combine({.round = 0}, worker.publisher);
  const double size_bytes = Scene::count * sizeof(double);
  CHECK(worker.progress.stats.bytes_sent == Approx(2 * size_bytes * 2 / 3));
}

TEST_CASE("an average of 16-bit weights is refused with the name of their type") {
  Scene scene(1, 3, stencil::ring(), with_rule(algorithm::gossip_pga()));
  std::vector<BFloat16> halves(Scene::count);
  combine::HostMixer mixer(ParameterLayout({view_of("halves", std::span(halves))}),
                           algorithm::gossip_pga().make(), {}, false);
  const worker::Context context{scene.setting, scene.progress, scene.exchange, mixer};
  Publisher publisher(context);
  GlobalAverage average(context, std::make_unique<ScriptedReducer>(Doubles{1, 2}));
  CHECK_THROWS_WITH(average.average({.round = 0}, publisher),
                    ContainsSubstring("element type bf16; f32 and f64 are supported"));
}
