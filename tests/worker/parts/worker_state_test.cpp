#include "worker/worker_state.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;
using worker::Publisher;
using worker::WorkerState;

namespace {

/// What a checkpoint holds of a worker.
struct SavedState {
  explicit SavedState(const std::vector<TensorView>& state) : views(state) {
    for (TensorView& view : views) {
      const auto* bytes = static_cast<const std::byte*>(view.data);
      memory.emplace_back(bytes, bytes + view.size_bytes());
    }
    for (std::size_t k = 0; k < views.size(); ++k) views[k].data = memory[k].data();
  }
  template <class T>
  std::vector<T> of(const std::string& name) const {
    for (std::size_t k = 0; k < views.size(); ++k) {
      if (views[k].name != name) continue;
      const T* values = reinterpret_cast<const T*>(memory[k].data());
      return {values, values + memory[k].size() / sizeof(T)};
    }
    return {};
  }
  std::vector<std::vector<std::byte>> memory;
  std::vector<TensorView> views;
};

/// Worker 1 of three on a ring, and its state.
struct Kept : Scene {
  explicit Kept(const char* rule = "awc", WorkerOptions options = {})
      : Scene(1, 3, stencil::ring(), with(rule, std::move(options))),
        publisher(context),
        state(context, plan) {
    mixer.start(true);
    publisher.begin(0);
  }
  static WorkerOptions with(const char* rule, WorkerOptions options) {
    options.algorithm = algorithm::by_name(rule);
    return options;
  }
  void has_made(std::int64_t rounds, std::int64_t combinations) {
    progress.stats.rounds = rounds;
    progress.combinations = combinations;
  }
  Publisher publisher;
  WorkerState state;
};

using Counters = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a state has the counters, and the message of a rule that publishes before the step") {
  Kept worker;
  worker.has_made(9, 4);
  const SavedState saved(worker.state.views());
  CHECK(saved.of<std::int64_t>("worker.counters") == Counters{9, 4, 1});
  CHECK(saved.of<double>("worker.message") == worker.exchange.newest().values);
  CHECK(saved.of<double>("mixer.epoch").empty());
  CHECK(saved.of<double>("worker.mixing_row").empty());
  worker.progress.sent = false;
  CHECK(SavedState(worker.state.views()).of<std::int64_t>("worker.counters").back() == 0);
}

TEST_CASE("rules that publish after the step have no message, unless it was published early") {
  Kept worker("atc");
  CHECK(SavedState(worker.state.views()).of<double>("worker.message").empty());
  worker.progress.published_early = true;
  CHECK(SavedState(worker.state.views()).of<double>("worker.message").size() == Scene::count);
}

TEST_CASE("a rule that refers to the mixing weights saves its row of them") {
  Kept worker("d2");
  const SavedState saved(worker.state.views());
  const std::vector<double> row = saved.of<double>("worker.mixing_row");
  REQUIRE(row.size() == 5);  // W_11, then 0 and W_10, 2 and W_12: all weights are equal
  CHECK((row[1] == 0 && row[3] == 2));
  CHECK(row[0] == Approx(row[2]));
  CHECK(row[0] == Approx(row[4]));
  CHECK(row[0] + row[2] + row[4] == Approx(1));
  CHECK(saved.of<double>("mixer.epoch").size() == 1);
}

TEST_CASE("a worker takes up counters and message at staleness 0, and publishes it again") {
  Kept before;
  before.has_made(9, 12);  // three times, weights were replaced between two rounds
  before.progress.sent = false;
  before.exchange.newest().values.assign(Scene::count, 0.25);
  const SavedState saved(before.state.views());
  Kept after;
  after.x.assign(Scene::count, 8);  // the tensors hold the saved weights already
  after.state.restore(saved.views, after.publisher);
  CHECK(after.progress.stats.rounds == 9);
  CHECK(after.progress.combinations == 12);
  CHECK_FALSE(after.progress.sent);
  CHECK(after.exchange.newest().values == std::vector<double>(Scene::count, 0.25));
  CHECK(after.exchange.rounds.back() == 12);
  CHECK(after.exchange.completed == 12);
  CHECK(after.x == std::vector<double>(Scene::count, 8));
}

TEST_CASE("a state with more steps between combinations is taken up with the combinations of now") {
  WorkerOptions options;
  options.mix_every = 4;
  Kept before("awc", options);
  before.has_made(8, 2);
  const SavedState saved(before.state.views());
  Kept after;
  after.state.restore(saved.views, after.publisher);
  CHECK(after.progress.stats.rounds == 8);
  CHECK(after.progress.combinations == 8);
  CHECK(after.exchange.rounds.back() == 8);
  CHECK(after.exchange.completed == 8);
}

TEST_CASE("above staleness 0 a worker begins again at the saved round, with a message of its own") {
  WorkerOptions options;
  options.staleness = 2;
  Kept before("awc", options);
  before.has_made(9, 9);
  before.exchange.newest().values.assign(Scene::count, 0.25);
  const SavedState saved(before.state.views());
  Kept after("awc", options);
  after.x.assign(Scene::count, 8);
  after.state.restore(saved.views, after.publisher);
  CHECK(after.progress.combinations == 9);
  CHECK(after.exchange.newest().values == after.x);
  CHECK(after.exchange.rounds.back() == 9);
}

TEST_CASE("a state is restored before the first round only") {
  Kept worker;
  const SavedState saved(worker.state.views());
  worker.has_made(3, 3);
  CHECK_THROWS_WITH(worker.state.restore(saved.views, worker.publisher),
                    ContainsSubstring("before the first round, 3 have been made"));
}

TEST_CASE("a state that lacks what the worker has is refused with its name") {
  Kept worker;
  SavedState saved(worker.state.views());
  saved.views.erase(saved.views.begin() + 1);
  Kept other;
  CHECK_THROWS_WITH(
      other.state.restore(saved.views, other.publisher),
      ContainsSubstring("a saved state with nothing") && ContainsSubstring("worker.message"));
}

TEST_CASE("a state of another rule is not taken for this rule's, though its vectors are as long") {
  WorkerOptions late;
  late.staleness = 2;
  for (const WorkerOptions& options : {WorkerOptions(), late}) {
    CAPTURE(options.staleness);
    Kept before("decentlam", options);
    SavedState saved(before.state.views());
    for (std::size_t k = 0; k < saved.views.size(); ++k)
      if (saved.views[k].name.starts_with("mixer.state"))
        std::ranges::fill(saved.memory[k], std::byte{64});
    Kept same("decentlam", options), other("quasi_global_momentum", options);
    const std::vector<double> begun = SavedState(other.state.views()).of<double>("mixer.state.1");
    same.state.restore(saved.views, same.publisher);
    CHECK(SavedState(same.state.views()).memory == saved.memory);
    if (options.staleness == 0) {
      CHECK_THROWS_WITH(other.state.restore(saved.views, other.publisher),
                        ContainsSubstring("a saved state of the algorithm decentlam where this "
                                          "worker has quasi_global_momentum"));
    } else {
      other.state.restore(saved.views, other.publisher);
      CHECK(SavedState(other.state.views()).of<double>("mixer.state.1") == begun);
    }
  }
}

TEST_CASE("a state is of these weights if its row is, or if the rule does not refer to them") {
  Kept plain, row("d2");
  WorkerOptions lazy;
  lazy.lazy_weights = true;  // (I + W) / 2
  Kept other("d2", lazy);
  const SavedState saved(row.state.views()), without(plain.state.views());
  CHECK(row.state.is_of_these_weights(saved.views));
  CHECK_FALSE(other.state.is_of_these_weights(saved.views));
  CHECK(other.state.is_of_these_weights(without.views));
  CHECK(plain.state.is_of_these_weights(saved.views));
}
