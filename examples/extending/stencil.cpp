// Two topologies outside the library: a stencil by its offsets, and a graph by its neighbors.
#include <algorithm>
#include <cstdio>
#include <fast/fast.hpp>
#include <memory>
#include <vector>

/// A worker reads those that a knight reaches on a periodic board.
fast::TopologyRule knight() {
  return fast::stencil::on_grid(
      "knight", {.sides = {}, .periodic = true},
      {{-2, -1}, {-2, 1}, {-1, -2}, {-1, 2}, {1, -2}, {1, 2}, {2, -1}, {2, 1}});
}

/// Two groups, the even and the odd workers, each a ring; worker 0 and worker 1 connect them.
class TwoRings final : public fast::Graph {
 public:
  explicit TwoRings(int workers) : workers_(workers) {}

  int workers() const override { return workers_; }
  std::vector<int> in_neighbors(int worker) const override {
    std::vector<int> found{(worker + 2) % workers_, (worker + workers_ - 2) % workers_};
    if (worker < 2) found.push_back(1 - worker);
    std::sort(found.begin(), found.end());
    return found;
  }
  std::vector<int> out_neighbors(int worker) const override { return in_neighbors(worker); }
  bool is_symmetric() const override { return true; }

 private:
  int workers_;
};

fast::TopologyRule two_rings() {
  return {"two rings", [](int workers) {
            fast::require(workers >= 6 && workers % 2 == 0, fast::ErrorKind::topology,
                          "two rings: {} workers; an even number of at least 6 is required",
                          workers);
            return fast::Topology("two rings", std::make_shared<TwoRings>(workers));
          }};
}

/// How far workers that start at their ranks are apart after so many rounds of averaging.
double distance_after(int rounds, int workers, const fast::TopologyRule& rule) {
  double distance = 0;
  fast::local::run(workers, [&](const fast::Group& group) {
    std::vector<double> x(1, group.rank());
    fast::WorkerOptions options;
    options.initial = fast::Initial::as_is;
    fast::Worker worker(group, rule, {fast::view_of("x", std::span(x))}, options);
    for (int round = 0; round < rounds; ++round) worker.step([] {});
    worker.await_finish();
    if (worker.rank() == 0) distance = worker.consensus_distance();
  });
  return distance;
}

int main() {
  for (const auto& rule : {knight(), two_rings(), fast::stencil::ring()}) {
    std::printf("%-9s: %.4f\n", rule.name().c_str(), distance_after(20, 16, rule));
  }
}
