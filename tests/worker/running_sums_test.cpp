// Rules whose messages are running sums, with the order of all rounds in the test's hand: a random
// one, in which messages are skipped, read late and read again.
#include <cmath>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <memory>
#include <numeric>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/seed.hpp"

using namespace fast;

namespace {

using Edges = std::vector<std::vector<int>>;  ///< in-neighbors

/// Passes everything on and remembers the scalar sent last.
struct RecordingSums : algorithm::Algorithm {
  explicit RecordingSums(const algorithm::Rule& rule) : inner(rule.make()) {}
  const algorithm::RuleTraits& traits() const override { return inner->traits(); }
  void apply(algorithm::Sweep sweep, const algorithm::AnyBlock& block) override {
    inner->apply(sweep, block);
  }
  bool begin_publish(const algorithm::RoundInfo& info, std::span<double> scalars) override {
    const bool sends = inner->begin_publish(info, scalars);
    if (!scalars.empty()) sent = scalars[0];
    return sends;
  }
  void begin_combine(const algorithm::RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) override {
    inner->begin_combine(info, own, pull);
  }
  std::shared_ptr<Algorithm> inner;
  double sent = 0;
};

/// Workers as threads construct them; afterwards one thread makes their rounds, in any order.
template <class T>
struct Crew {
  std::vector<std::vector<T>> x;
  std::vector<std::shared_ptr<RecordingSums>> rules;
  std::vector<std::unique_ptr<Worker>> workers;
  Edges sources;
  std::int64_t staleness;

  Crew(const Edges& in_neighbors, std::string_view rule, std::int64_t bound)
      : x(in_neighbors.size()),
        rules(x.size()),
        workers(x.size()),
        sources(in_neighbors),
        staleness(bound) {
    local::run(static_cast<int>(x.size()), [&](const Group& group) {
      const auto me = static_cast<std::size_t>(group.rank());
      x[me].assign(3, static_cast<T>(group.rank()));
      WorkerOptions options;
      options.algorithm = algorithm::Rule([&] {  // the worker's is made last
        return rules[me] = std::make_shared<RecordingSums>(algorithm::by_name(rule));
      });
      options.staleness = staleness;
      options.initial = Initial::as_is;
      options.deadline = Seconds(20);
      workers[me] = std::make_unique<Worker>(group, Topology("crew", sources),
                                             std::vector{view_of("x", std::span(x[me]))}, options);
    });
  }

  /// A worker that would not have to wait, those of lower rank more often.
  std::size_t pick(Rng& rng) const {
    for (;;) {
      const std::size_t i = std::min(rng.below(x.size()), rng.below(x.size()));
      const bool free = std::all_of(sources[i].begin(), sources[i].end(), [&](int j) {
        const auto last =
            std::max<std::int64_t>(0, workers[static_cast<std::size_t>(j)]->round() - 1);
        return staleness == unbounded_staleness || last >= workers[i]->round() - staleness;
      });
      if (free) return i;
    }
  }
};

/// Push-sum by its books: what every worker has and what is on its way along every edge.
struct Books {
  Edges sources;
  std::vector<double> x, mass, share;    ///< share: of a worker's mass that each edge takes
  std::vector<double> pushed_x, pushed;  ///< all that went into each edge of a worker, so far
  std::vector<std::vector<double>> taken_x, taken;

  explicit Books(const Edges& in_neighbors)
      : sources(in_neighbors), x(sources.size()), mass(x.size(), 1), share(x.size(), 1) {
    std::iota(x.begin(), x.end(), 0.0);
    for (const auto& of : sources) {
      for (const int j : of) share[static_cast<std::size_t>(j)] += 1;
    }
    for (double& s : share) s = 1 / s;
    pushed_x = pushed = std::vector<double>(x.size());
    taken_x = taken = std::vector(x.size(), pushed);
  }
  void round(std::size_t i, bool pushes) {
    double next_x = x[i], next = mass[i];
    if (pushes) {
      pushed_x[i] += x[i];
      pushed[i] += mass[i];
      next_x *= share[i];
      next *= share[i];
    }
    for (const int source : sources[i]) {
      const auto j = static_cast<std::size_t>(source);
      next_x += share[j] * (pushed_x[j] - taken_x[i][j]);
      next += share[j] * (pushed[j] - taken[i][j]);
      taken_x[i][j] = pushed_x[j];
      taken[i][j] = pushed[j];
    }
    x[i] = next_x;
    mass[i] = next;
  }
  double all_mass() const {
    double sum = std::accumulate(mass.begin(), mass.end(), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (const int j : sources[i]) {
        const auto from = static_cast<std::size_t>(j);
        sum += share[from] * (pushed[from] - taken[i][from]);
      }
    }
    return sum;
  }
};

const Edges digraph{{3}, {0}, {0, 1}, {0, 2}};

template <class T>
void follow_the_books(std::int64_t staleness, double tolerance) {
  const std::uint64_t seed = test_seed(1);
  INFO("FAST_TEST_SEED=" << seed << ", staleness " << staleness);
  Rng rng(seed);
  Crew<T> crew(digraph, "push_sum", staleness);
  Books books(digraph);
  double worst = 0, lost = 0;
  for (int t = 0; t < 6000; ++t) {
    const std::size_t i = crew.pick(rng);
    crew.workers[i]->step([] {});
    const double sent = crew.rules[i]->sent;
    if (sent != 0) worst = std::max(worst, std::abs(sent - books.mass[i]));
    books.round(i, sent != 0);
    lost = std::max(lost, std::abs(books.all_mass() - 4));
    worst = std::max(worst, std::abs(double{crew.x[i][2]} - books.x[i] / books.mass[i]));
  }
  CHECK(worst < tolerance);
  CHECK(lost < 1e-10);
  for (const auto& x : crew.x) CHECK(std::abs(double{x[0]} - 1.5) < tolerance);
}

}  // namespace

TEST_CASE("push-sum loses and doubles no mass, in whatever order workers make their rounds") {
  for (const std::int64_t staleness : {std::int64_t{1}, std::int64_t{4}, unbounded_staleness}) {
    follow_the_books<double>(staleness, 1e-10);
    follow_the_books<float>(staleness, 1e-5);
  }
}

TEST_CASE("push-sum's steps stay small on workers that seldom hear from others") {
  const std::uint64_t seed = test_seed(2);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  Crew<float> crew(digraph, "push_sum", unbounded_staleness);
  for (int t = 0; t < 20000; ++t) {
    const std::size_t i = t % 4000 < 500 ? 0 : crew.pick(rng);  // now and then one runs ahead
    crew.workers[i]->step([&] {
      for (float& x : crew.x[i]) x -= 0.05F * (x - static_cast<float>(i));
    });
    REQUIRE(crew.x[i][0] > -0.5);
    REQUIRE(crew.x[i][0] < 3.5);
  }
}

TEST_CASE("gradient tracking reaches the common optimum, in whatever order rounds are made") {
  const std::uint64_t seed = test_seed(3);
  const Edges ring{{1, 3}, {0, 2}, {1, 3}, {0, 2}};
  for (const std::int64_t staleness :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, unbounded_staleness}) {
    INFO("FAST_TEST_SEED=" << seed << ", staleness " << staleness);
    Rng rng(seed);
    Crew<double> crew(ring, "gradient_tracking", staleness);
    double weighted = 0, weights = 0;
    for (int i = 0; i < 4; ++i) {
      weighted += (1 + i) * i;
      weights += 1 + i;
    }
    for (int t = 0; t < 20000; ++t) {
      const std::size_t i = crew.pick(rng);
      const auto b = static_cast<double>(i);
      crew.workers[i]->step([&] {
        for (double& x : crew.x[i]) x -= 0.01 * (1 + b) * (x - b);
      });
    }
    for (const auto& x : crew.x) CHECK(std::abs(x[1] - weighted / weights) < 1e-6);
  }
}
