// The Base-(k+1) graph, after algorithms 1 to 3 of Takezawa et al. 2023, arXiv 2305.11420. Every
// worker finds its own part of a round by arithmetic on its number.
#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <optional>
#include <utility>

namespace fast {
namespace {

struct Row {
  std::vector<std::pair<int, double>> others;
  double self = 1;

  void read(int worker, double weight) {
    others.emplace_back(worker, weight);
    self -= weight;
  }
};

// The fewest factors of 2..most whose product is n, or nothing.
std::optional<std::vector<int>> fewest_factors(int n, int most) {
  if (n == 1) return std::vector<int>{};
  std::optional<std::vector<int>> best;
  for (int factor = std::min(n, most); factor >= 2; --factor) {
    if (n % factor != 0) continue;
    // Ascending from the back only, so that each product is tried once.
    auto rest = fewest_factors(n / factor, factor);
    if (!rest || (best && rest->size() + 1 >= best->size())) continue;
    rest->push_back(factor);
    best = std::move(rest);
  }
  return best;
}

// k-peer hyper-hypercube over 0..size-1: in round l the workers that differ in digit l alone take
// their mean.
struct HyperHypercube {
  std::vector<int> factors;

  int rounds() const { return static_cast<int>(factors.size()); }
  void add(int round, int index, int first, int step, Row& row) const {
    if (round < 0 || round >= rounds()) return;
    int stride = 1;
    for (int l = 0; l < round; ++l) stride *= factors[l];
    const int factor = factors[round], digit = index / stride % factor;
    for (int other = 0; other < factor; ++other) {
      if (other == digit) continue;
      row.read(first + step * (index + (other - digit) * stride), 1.0 / factor);
    }
  }
};

// One digit of the number of workers in base k+1: `copies` blocks of `block` workers.
struct Part {
  int first, copies, block;
  HyperHypercube all, inside;  // over the part, over one block
  int size() const { return copies * block; }
};

// Simple Base-(k+1) graph. First every part takes its own mean. Then, part by part, all workers of
// the later parts read one worker of each block of this part and are read by it, with weights after
// which the later parts' mean and each block's mean are the whole's; blocks then take their means.
class SimpleBase {
 public:
  SimpleBase(int workers, int k) : workers_(workers) {
    std::vector<int> powers = {1};
    while (powers.back() <= workers / (k + 1)) powers.push_back(powers.back() * (k + 1));
    if (auto factors = fewest_factors(workers, k + 1)) {
      parts_.push_back({0, 1, workers, {*factors}, {}});
      rounds_ = parts_[0].all.rounds();
      return;
    }
    for (int first = 0, p = static_cast<int>(powers.size()) - 1; p >= 0; --p) {
      const int copies = (workers - first) / powers[p];
      if (copies == 0) continue;
      HyperHypercube inside{std::vector<int>(p, k + 1)};
      HyperHypercube all = inside;
      if (copies > 1) all.factors.push_back(copies);
      parts_.push_back({first, copies, powers[p], std::move(all), std::move(inside)});
      first += copies * powers[p];
    }
    alone_ = parts_[0].all.rounds();
    rounds_ = alone_ + static_cast<int>(parts_.size()) - 1;
    for (std::size_t l = 0; l + 1 < parts_.size(); ++l) {
      rounds_ = std::max(rounds_, alone_ + static_cast<int>(l) + 1 + parts_[l].inside.rounds());
    }
  }

  int rounds() const { return rounds_; }

  void add(int round, int index, int first, Row& row) const {
    std::size_t mine = parts_.size() - 1;
    while (parts_[mine].first > index) --mine;
    const Part& part = parts_[mine];
    const int place = index - part.first;
    if (parts_.size() == 1 || round < alone_) {
      part.all.add(round, place, first + part.first, 1, row);
      return;
    }
    const auto turn = static_cast<std::size_t>(round - alone_);  // the part that is read
    if (turn < mine) {
      read_blocks(parts_[turn], index, first, row);
    } else if (mine + 1 < parts_.size() && turn == mine) {
      read_later(part, place, first, row);
    } else if (mine + 1 < parts_.size()) {
      inside(part, turn - mine - 1, place, first, row);
    }
  }

 private:
  static void inside(const Part& part, std::size_t round, int place, int first, Row& row) {
    const int block = place / part.block;
    part.inside.add(static_cast<int>(round), place % part.block,
                    first + part.first + block * part.block, 1, row);
  }

  double weight(const Part& part) const {
    return static_cast<double>(part.block) / (workers_ - part.first);
  }

  void read_blocks(const Part& part, int index, int first, Row& row) const {
    const int place = index - part.first - part.size();
    for (int copy = 0; copy < part.copies; ++copy) {
      row.read(first + part.first + copy * part.block + place, weight(part));
    }
  }

  void read_later(const Part& part, int place, int first, Row& row) const {
    const int later = part.first + part.size() + place % part.block;
    if (later < workers_) row.read(first + later, weight(part));
  }

  int workers_;
  std::vector<Part> parts_;
  int alone_ = 0, rounds_ = 0;
};

// N = p·q with p of factors up to k+1 alone: p simple graphs over q workers, then a hyper-hypercube
// over each p workers of the same place; or one simple graph when that takes fewer rounds.
class BasePlan {
 public:
  BasePlan(int workers, int k) : workers_(workers), simple_(workers, k) {
    int q = workers;
    for (int factor = 2; factor <= k + 1; ++factor) {
      while (q % factor == 0) q /= factor;
    }
    if (q == 1 || q == workers) return;
    SimpleBase smaller(q, k);
    HyperHypercube across{*fewest_factors(workers / q, k + 1)};
    if (smaller.rounds() + across.rounds() >= simple_.rounds()) return;
    simple_ = std::move(smaller);
    across_ = std::move(across);
    group_ = q;
  }

  int workers() const { return workers_; }
  int rounds() const { return std::max(1, simple_.rounds() + across_.rounds()); }

  Row row(int round, int worker) const {
    Row row;
    const int group = worker / group_of(), place = worker % group_of();
    if (round < simple_.rounds()) {
      simple_.add(round, place, group * group_of(), row);
    } else {
      across_.add(round - simple_.rounds(), group, place, group_of(), row);
    }
    std::ranges::sort(row.others);
    return row;
  }

 private:
  int group_of() const { return group_ == 0 ? workers_ : group_; }

  int workers_;
  SimpleBase simple_;
  HyperHypercube across_;
  int group_ = 0;
};

class BaseRound final : public Graph, public GraphWeights {
 public:
  BaseRound(std::shared_ptr<const BasePlan> plan, int round)
      : plan_(std::move(plan)), round_(round) {}

  int workers() const override { return plan_->workers(); }
  std::vector<int> in_neighbors(int worker) const override {
    std::vector<int> result;
    for (const auto& [other, unused] : plan_->row(round_, worker).others) result.push_back(other);
    return result;
  }
  std::vector<int> out_neighbors(int worker) const override { return in_neighbors(worker); }
  bool is_symmetric() const override { return true; }
  std::vector<double> in_weights(int worker) const override {
    std::vector<double> result;
    for (const auto& [unused, weight] : plan_->row(round_, worker).others) result.push_back(weight);
    return result;
  }
  double self_weight(int worker) const override { return plan_->row(round_, worker).self; }

 private:
  std::shared_ptr<const BasePlan> plan_;
  int round_;
};

}  // namespace

namespace schedule {

TopologyRule base(int k) {
  require(k >= 1 && k <= 63, ErrorKind::topology, "base: k = {}, 1 to 63 neighbors are possible",
          k);
  const std::string name = fmt::format("base{}", k + 1);
  return {name, [=](int workers) {
            const auto plan = std::make_shared<const BasePlan>(workers, k);
            std::vector<Topology> rounds;
            for (int round = 0; round < plan->rounds(); ++round) {
              rounds.emplace_back(fmt::format("{} round {}", name, round),
                                  std::make_shared<BaseRound>(plan, round));
            }
            return Schedule(name, std::move(rounds));
          }};
}

}  // namespace schedule
}  // namespace fast
