// relay_sum on trees, against sums and counts as the paper has them.
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/lockstep.hpp"
#include "support/seed.hpp"
#include "worker/quick.hpp"

namespace fast::testing::relay_on_trees {

using Lists = std::vector<std::vector<int>>;

inline void connect(Lists& lists, int a, int b) {
  lists[static_cast<std::size_t>(a)].push_back(b);
  lists[static_cast<std::size_t>(b)].push_back(a);
}

inline const std::vector<int>& near(const Lists& lists, int worker) {
  return lists[static_cast<std::size_t>(worker)];
}

inline std::size_t degree_of(const Lists& lists) {
  std::size_t most = 2;
  for (const auto& list : lists) most = std::max(most, list.size());
  return most;
}

/// Of 2 to 14 workers, who have at most 8 neighbors; worker 0 is anywhere.
inline Lists random_tree(Rng& rng) {
  const std::size_t count = 2 + rng.below(13);
  std::vector<int> workers(count);
  std::iota(workers.begin(), workers.end(), 0);
  rng.shuffle(std::span(workers));
  Lists lists(count);
  for (std::size_t i = 1; i < count; ++i) {
    std::size_t parent = rng.below(i);
    while (near(lists, workers[parent]).size() == 8) parent = rng.below(i);
    connect(lists, workers[i], workers[parent]);
  }
  return lists;
}

/// A star of five, the binary tree of seven, and trees that are drawn.
inline std::vector<Lists> trees(Rng& rng) {
  std::vector<Lists> all{Lists(5), Lists(7)};
  for (int leaf : {0, 1, 3, 4}) connect(all[0], leaf, 2);
  for (int child = 1; child < 7; ++child) connect(all[1], child, (child - 1) / 2);
  for (int k = 0; k < 8; ++k) all.push_back(random_tree(rng));
  return all;
}

inline std::string text_of(const Lists& lists) {
  std::string text;
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (const int j : lists[i])
      if (j > static_cast<int>(i)) text += fmt::format("{}-{} ", i, j);
  return text;
}

inline Lockstep<double> started(const Lists& lists, std::size_t degree,
                                const std::vector<double>& start) {
  WorkerOptions options;
  options.algorithm = algorithm::relay_sum({.degree = static_cast<std::int64_t>(degree)});
  const TopologyRule rule("drawn", [lists](int) { return Schedule(Topology("drawn", lists)); });
  return {rule, static_cast<int>(lists.size()), start, options};
}

inline std::vector<int> distances(const Lists& lists, int from) {
  std::vector<int> found(lists.size(), -1), open{from};
  found[static_cast<std::size_t>(from)] = 0;
  for (std::size_t next = 0; next < open.size(); ++next) {
    for (const int j : near(lists, open[next])) {
      if (found[static_cast<std::size_t>(j)] >= 0) continue;
      found[static_cast<std::size_t>(j)] = found[static_cast<std::size_t>(open[next])] + 1;
      open.push_back(j);
    }
  }
  return found;
}

/// Algorithm 1 of the paper for one element, in its variables: m and n by edge (sender, receiver).
/// What does not arrive is 0 workers.
struct Paper {
  Lists lists;
  std::vector<double> x;
  std::map<std::pair<int, int>, std::pair<double, int>> m{};

  template <class Step, class Loses>
  void round(const Step& step, const Loses& loses) {
    std::map<std::pair<int, int>, std::pair<double, int>> sent;
    for (int i = 0; i < static_cast<int>(x.size()); ++i) {
      x[static_cast<std::size_t>(i)] += step(i);
      for (const int j : near(lists, i)) {
        std::pair<double, int> message{x[static_cast<std::size_t>(i)], 1};
        for (const int k : near(lists, i)) {
          if (k == j) continue;
          message.first += m[{k, i}].first;
          message.second += m[{k, i}].second;
        }
        sent[{i, j}] = loses(j, i) ? std::pair<double, int>{} : message;
      }
    }
    m = sent;
    for (int i = 0; i < static_cast<int>(x.size()); ++i) {
      std::pair<double, int> all{x[static_cast<std::size_t>(i)], 1};
      for (const int j : near(lists, i)) {
        all.first += m[{j, i}].first;
        all.second += m[{j, i}].second;
      }
      x[static_cast<std::size_t>(i)] = all.first / all.second;
    }
  }
};

TEST_CASE("relay_sum on trees has the sums and counts of the paper, whatever is lost") {
  const std::uint64_t seed = test_seed(71);
  Rng rng(seed);
  constexpr std::size_t elements = 700;
  for (const Lists& lists : trees(rng)) {
    const std::size_t degree = degree_of(lists) + rng.below(9 - degree_of(lists));
    INFO("FAST_TEST_SEED=" << seed << ", degree " << degree << ": " << text_of(lists));
    std::vector<double> start(elements);
    for (double& x : start) x = rng.normal();
    Lockstep<double> run = started(lists, degree, start);
    std::vector<Paper> papers;
    for (const double x : start) papers.push_back({lists, std::vector<double>(lists.size(), x)});
    for (std::uint64_t t = 0; t < 40; ++t) {
      const auto loses = [&](int reader, int source) {
        return t >= 20 && mix_seed(seed + t, static_cast<std::uint64_t>(reader),
                                   static_cast<std::uint64_t>(source)) %
                                  4 ==
                              0;
      };
      const auto step = [&](int worker, std::size_t e) {
        return std::sin(static_cast<double>(t * 31 + static_cast<std::size_t>(worker) * 7 + e));
      };
      run.lose(loses);
      run.round(
          [&](int worker, std::span<double> x) {
            for (std::size_t e = 0; e < elements; ++e) x[e] += step(worker, e);
          },
          0.1);
      double worst = 0;
      for (std::size_t e = 0; e < elements; ++e) {
        papers[e].round([&](int worker) { return step(worker, e); }, loses);
        for (std::size_t w = 0; w < lists.size(); ++w)
          worst = std::max(worst, std::abs(run.x(static_cast<int>(w))[e] - papers[e].x[w]));
      }
      INFO("round " << t);
      REQUIRE(worst < 1e-13);
    }
  }
}

TEST_CASE("in round t a worker of a tree has the mean of those at distance t, of all at the end") {
  const std::uint64_t seed = test_seed(72);
  Rng rng(seed);
  for (const Lists& lists : trees(rng)) {
    INFO("FAST_TEST_SEED=" << seed << ": " << text_of(lists));
    // Each step goes back to the worker's own number, a power of 2 or -2.
    const auto own = [](std::size_t worker) {
      return std::ldexp(worker % 2 == 0 ? 1 : -1, static_cast<int>(worker));
    };
    Lockstep<double> run = started(lists, degree_of(lists), {0.0});
    for (int t = 1; t <= static_cast<int>(lists.size()); ++t) {
      run.round(
          [&](int worker, std::span<double> x) { x[0] = own(static_cast<std::size_t>(worker)); },
          0.1);
      for (int i = 0; i < static_cast<int>(lists.size()); ++i) {
        const std::vector<int> far = distances(lists, i);
        double sum = 0, count = 0;
        for (std::size_t j = 0; j < far.size(); ++j) {
          if (far[j] > t) continue;
          sum += own(j);
          ++count;
        }
        CHECK(run.x(i)[0] == Approx(sum / count).margin(1e-11));
      }
    }
  }
}

// With all counts there, x_i is the mean over all j of x_j from d_ij rounds ago, or from the last
// one. These means keep N x + Σ (d_ij - 1) x / N, to which a step s adds s.
TEST_CASE("a step of any worker of a tree moves all by the same at the end") {
  const std::uint64_t seed = test_seed(73);
  Rng rng(seed);
  for (const Lists& lists : trees(rng)) {
    INFO("FAST_TEST_SEED=" << seed << ": " << text_of(lists));
    const auto count = static_cast<double>(lists.size());
    double delays = 0;
    for (int i = 0; i < static_cast<int>(lists.size()); ++i)
      for (const int d : distances(lists, i)) delays += std::max(d, 1) - 1;
    for (int mover = 0; mover < static_cast<int>(lists.size()); ++mover) {
      Lockstep<double> run = started(lists, degree_of(lists), {0.0});
      for (std::size_t t = 0; t < 1500; ++t) {
        run.round(
            [&](int worker, std::span<double> x) {
              x[0] += worker == mover && t == lists.size() ? 3 : 0;
            },
            0.1);
      }
      for (int w = 0; w < static_cast<int>(lists.size()); ++w)
        CHECK(run.x(w)[0] == Approx(3 / (count + delays / count)).epsilon(1e-11));
    }
  }
}

TEST_CASE("a tree without one of its workers is parts, each at its own optimum") {
  const std::uint64_t seed = test_seed(74);
  Rng rng(seed);
  for (const Lists& lists : trees(rng)) {
    const auto workers = static_cast<int>(lists.size());
    const auto train = [](Lockstep<double>& run) {
      for (int t = 0; t < 2000; ++t) {
        run.round([](int worker, std::span<double> x) { x[0] -= 0.03 * (x[0] - worker * worker); },
                  0.03);
      }
    };
    for (int lost = 0; lost < workers; ++lost) {
      INFO("FAST_TEST_SEED=" << seed << ", without " << lost << ": " << text_of(lists));
      Lockstep<double> run = started(lists, degree_of(lists), {1.0});
      run.lose([lost](int reader, int source) { return reader == lost || source == lost; });
      train(run);
      Lists left = lists;
      left[static_cast<std::size_t>(lost)].clear();
      for (auto& list : left) std::erase(list, lost);
      const auto check = [&](const Lists& parts) {
        for (int i = 0; i < workers; ++i) {
          const std::vector<int> far = distances(parts, i);
          double sum = 0, count = 0;
          for (int j = 0; j < workers; ++j) {
            if (far[static_cast<std::size_t>(j)] < 0) continue;
            sum += j * j;
            ++count;
          }
          CHECK(run.x(i)[0] == Approx(sum / count).margin(1e-9));
        }
      };
      check(left);
      run.lose({});
      train(run);
      check(lists);
    }
  }
}

TEST_CASE("an edge of relay_sum carries one mean and the counts, whatever the degree") {
  constexpr std::size_t elements = 700;
  for (const std::int64_t degree : {2, 5}) {
    std::array<double, 4> sent{};
    local::run(4, [&](const Group& group) {
      std::vector<double> x(elements);
      WorkerOptions options = quick();
      options.algorithm = algorithm::relay_sum({.degree = degree});
      Worker worker(group, stencil::grid1d(), {view_of("x", std::span(x))}, options);
      for (int t = 0; t < 3; ++t) worker.step([] {}, {.learning_rate = 0.1});
      sent[static_cast<std::size_t>(group.rank())] = worker.stats().bytes_sent;
      worker.await_finish();
    });
    const double edge = 8.0 * elements + 8.0 * static_cast<double>(degree);
    CHECK(sent == std::array{3 * edge, 6 * edge, 6 * edge, 3 * edge});
  }
}

TEST_CASE("relay_sum refuses what is no tree, and more neighbors than a slot has room for") {
  const auto made = [](const TopologyRule& rule, int workers, std::int64_t degree) {
    const auto relay = algorithm::relay_sum({.degree = degree});
    return fitting_weights(rule.make(workers), relay.traits(), WeightRule::automatic, false, 0);
  };
  CHECK_NOTHROW(made(graph::tree(), 7, 3));
  CHECK_NOTHROW(made(graph::star(), 9, 8));
  CHECK_NOTHROW(made(stencil::grid1d(), 1, 2));
  const auto no_tree = Catch::Matchers::Contains("it needs a tree, whose edges go both ways and");
  CHECK_THROWS_WITH(made(stencil::ring(), 5, 8), no_tree);
  CHECK_THROWS_WITH(made(stencil::ring(true), 5, 8), no_tree);
  // A ring of three beside a single edge has as many edges as a tree.
  const Topology parts("parts", Lists{{1, 2}, {0, 2}, {0, 1}, {4}, {3}});
  CHECK_THROWS_WITH(made(parts, 5, 8), no_tree);
  CHECK_THROWS_WITH(made(graph::tree(), 7, 2),
                    Catch::Matchers::Contains("at most 2 neighbors, not 3: its option degree"));
  CHECK_THROWS_WITH(made(graph::star(), 10, 8),
                    Catch::Matchers::Contains("at most 8 neighbors, not 9"));
  for (const std::int64_t degree : {1, 9}) {
    CHECK_THROWS_WITH(algorithm::relay_sum({.degree = degree}),
                      Catch::Matchers::Contains("it must be from 2 to 8"));
  }
}

}  // namespace fast::testing::relay_on_trees
