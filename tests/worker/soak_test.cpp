// Random sizes, schedules, rules, staleness bounds and codecs on threads, for FAST_SOAK_SECONDS
// (10). After every run each combination of each worker is recomputed from the recorded weights: at
// staleness 0 with exactly the neighbors' versions of the round, else with versions that the bound
// allows and that never go back, which must add up to what the worker got.
#include <array>
#include <cmath>
#include <cstdlib>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <thread>

#include "combine/segment_sweep.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/seed.hpp"

using namespace fast;
using testing::expect;

namespace {

/// A model's element e is coefficient e mod classes, times a power of two. Whatever is averaged,
/// its elements stay in that proportion unless versions are mixed within a vector.
constexpr std::size_t most_classes = 8;
using Coefficients = std::array<double, most_classes>;

double scale_of(std::size_t element, std::size_t classes) {
  const auto lap = static_cast<int>(element / classes % 5);
  return std::ldexp(lap % 2 == 0 ? 1 : -1, lap);
}

struct Plan {
  std::uint64_t seed = 0;
  int workers = 1;
  std::string algorithm;
  algorithm::Parameters parameters;
  TopologyRule rule = stencil::ring();
  std::int64_t staleness = 0, mix_every = 1, rounds = 1;
  std::string codec = "identity";
  bool wide = false;      ///< f64
  bool rotating = false;  ///< arena
  std::size_t count = 1;

  std::size_t classes() const { return std::min(count, most_classes); }
  std::string text() const {
    return fmt::format(
        "FAST_TEST_SEED={}: {} on {} of {} workers, staleness {}, {} {} values, codec {}, {} "
        "arena, mixed every {} steps, {} steps",
        seed, algorithm, rule.name(), workers,
        staleness == unbounded_staleness ? "inf" : std::to_string(staleness), count,
        wide ? "f64" : "f32", codec, rotating ? "rotating" : "fixed", mix_every, rounds);
  }
};

template <class T>
const T& one_of(Rng& rng, const std::vector<T>& choices) {
  return choices[rng.below(choices.size())];
}

TopologyRule rule_of(Rng& rng, const Plan& plan) {
  if (plan.workers == 1) return stencil::ring();
  const std::uint64_t seed = rng();
  if (plan.algorithm == "pairwise") {
    return one_of<TopologyRule>(rng,
                                {schedule::alternating_pairs(), schedule::random_matchings(seed)});
  }
  // Of at most two neighbors, so that their versions can be found.
  std::vector<TopologyRule> rules{stencil::ring(),
                                  stencil::ring(true),
                                  schedule::one_peer_exponential(),
                                  schedule::alternating_pairs(),
                                  schedule::random_matchings(seed),
                                  schedule::equidyn(seed),
                                  schedule::base(1)};
  if (plan.staleness == 0) {
    rules.insert(rules.end(), {stencil::torus2d(), stencil::grid2d(), stencil::complete(),
                               stencil::exponential(), schedule::base(2)});
  }
  return one_of(rng, rules);
}

Plan plan_of(std::uint64_t seed) {
  Rng rng(seed);
  Plan plan;
  plan.seed = seed;
  plan.workers = static_cast<int>(1 + rng.below(6));
  plan.algorithm = one_of<std::string>(
      rng, {"awc", "awc", "atc", "atc", "local", "pairwise", "gossip_pga", "allreduce", "none"});
  if (plan.algorithm == "local") plan.parameters = {{"period", std::to_string(1 + rng.below(4))}};
  if (plan.algorithm == "gossip_pga") plan.parameters = {{"period", "3"}};
  const bool any_staleness =
      plan.algorithm == "awc" || plan.algorithm == "atc" || plan.algorithm == "local";
  if (any_staleness) {
    plan.staleness = one_of<std::int64_t>(rng, {0, 0, 1, 2, 7, unbounded_staleness});
    plan.wide = rng.below(2) == 0;
    if (!plan.wide && rng.below(4) == 0) plan.codec = "bf16";
  }
  if (rng.below(4) == 0) plan.mix_every = static_cast<std::int64_t>(2 + rng.below(3));
  plan.rotating = (plan.algorithm == "awc" || plan.algorithm == "pairwise") &&
                  plan.codec == "identity" && plan.mix_every == 1 && rng.below(2) == 0;
  plan.rule = rule_of(rng, plan);
  plan.count = static_cast<std::size_t>(std::exp(rng.uniform(0, std::log(60000))));
  // Blocks of one round may be of different publications; a trace has one of each neighbor.
  if (plan.staleness != 0) {
    const bool averages = plan.algorithm == "awc";
    plan.count =
        std::min(plan.count, averages ? combine::checked_elements : combine::block_elements);
  }
  plan.rounds = static_cast<std::int64_t>(10 + rng.below(80));
  return plan;
}

/// A combination of one worker.
struct Moment {
  Coefficients
      before{};  ///< where it stood when it published for this combination, if before steps
  Coefficients current{};  ///< after its own steps
  Coefficients after{};
};

struct Trace {
  std::vector<Moment> moments;
  WorkerStats stats;
};

/// The coefficients of the model, all of whose elements must agree on them.
template <class T>
Coefficients read(std::span<const T> x, const Plan& plan) {
  Coefficients c{};
  const std::size_t classes = plan.classes();
  const double tolerance = plan.wide ? 1e-12 : 1e-5;
  for (std::size_t k = 0; k < classes; ++k) c[k] = double{x[k]};
  for (std::size_t e = classes; e < x.size(); ++e) {
    const double value = double{x[e]} / scale_of(e, classes);
    if (std::abs(value - c[e % classes]) > tolerance * (1 + std::abs(value))) {
      expect(false, fmt::format("element {} is {} of its kind, element {} is {}: torn", e, value,
                                e % classes, c[e % classes]));
    }
  }
  return c;
}

Coefficients random_step(Rng& rng) {
  Coefficients step{};
  for (double& value : step) value = rng.normal();
  return step;
}

/// To elements `first`... of the model.
template <class T>
void add(const Coefficients& step, std::size_t first, std::span<T> part, const Plan& plan) {
  const std::size_t classes = plan.classes();
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::size_t e = first + i;
    part[i] += static_cast<T>(static_cast<T>(step[e % classes]) * scale_of(e, classes));
  }
}

/// Now and then longer, so that workers drift apart.
void dawdle(Rng& rng, std::uint64_t slowness) {
  Rng idle(1);
  for (std::uint64_t turn = rng.below(slowness); turn > 0; --turn) idle();
  if (rng.below(8) == 0) std::this_thread::yield();
}

template <class T>
void work(const Group& group, const Plan& plan, Trace& trace) {
  Rng rng(mix_seed(plan.seed, static_cast<std::uint64_t>(group.rank()), 1));
  std::vector<T> x(plan.count);
  add<T>(random_step(rng), 0, x, plan);
  WorkerOptions options;
  options.algorithm = algorithm::by_name(plan.algorithm, plan.parameters);
  options.staleness = plan.staleness;
  options.mix_every = plan.mix_every;
  options.codec = codec::by_name(plan.codec);
  options.initial = Initial::as_is;
  options.deadline = Seconds(60);
  const std::int64_t steps_a_combination =
      plan.mix_every * options.algorithm.traits().timing.combine_every;
  Worker worker(group, plan.rule, {view_of("x", std::span(x))}, options);
  const std::uint64_t slowness = 1 + rng.below(50000);
  const auto weights = [&] {
    return plan.rotating ? std::span(RotatingArena<T>(worker).weights(), x.size())
                         : std::span<const T>(x);
  };
  Moment moment;
  moment.before = read<T>(x, plan);
  for (std::int64_t step = 1; step <= plan.rounds; ++step) {
    const Coefficients move = random_step(rng);
    if (plan.rotating) {
      worker.begin_round();
      dawdle(rng, slowness);
      for (std::size_t k = 0; k < plan.classes(); ++k) {
        moment.current[k] = moment.before[k] + double{static_cast<T>(move[k])};
      }
      RotatingArena<T>(worker).end_round(PartUpdate<T>(
          [&](std::size_t first, std::span<T> part) { add(move, first, part, plan); }));
    } else {
      worker.step([&] {
        add<T>(move, 0, x, plan);
        dawdle(rng, slowness);
        moment.current = read<T>(x, plan);
      });
    }
    moment.after = read<T>(weights(), plan);
    if (step % steps_a_combination != 0) continue;
    trace.moments.push_back(moment);
    moment.before = moment.after;
  }
  group.barrier(Deadline(Seconds(60)), "all rounds are over");  // finish() publishes once more
  trace.stats = worker.stats();
}

/// What a worker has published, in order.
struct Publication {
  Coefficients message;
  std::int64_t round;
};

class Oracle {
 public:
  Oracle(const Plan& plan, const std::vector<Trace>& traces)
      : plan_(plan), traces_(traces), schedule_(plan.rule.make(plan.workers)) {
    for (const Trace& trace : traces) publications_.push_back(published(trace));
  }

  void check() const {
    for (int worker = 0; worker < plan_.workers; ++worker) check(worker);
  }

 private:
  const Trace& trace(int worker) const { return traces_[static_cast<std::size_t>(worker)]; }
  const Moment& moment(int worker, std::size_t t) const { return trace(worker).moments[t]; }
  bool before_step() const { return plan_.algorithm == "awc" || plan_.algorithm == "pairwise"; }

  Coefficients coded(Coefficients c) const {
    if (plan_.codec == "bf16") {
      for (double& value : c) value = to_float(to_bfloat16(static_cast<float>(value)));
    }
    return c;
  }

  std::vector<Publication> published(const Trace& trace) const {
    std::vector<Publication> all;
    if (trace.moments.empty()) return all;
    const auto rounds = static_cast<std::int64_t>(trace.moments.size());
    if (!before_step()) all.push_back({coded(trace.moments.front().before), 0});  // for the mean
    for (std::int64_t t = 0; t < rounds; ++t) {
      const Moment& m = trace.moments[static_cast<std::size_t>(t)];
      all.push_back({coded(before_step() ? m.before : m.current), t});
    }
    if (before_step()) all.push_back({coded(trace.moments.back().after), rounds});
    return all;
  }

  Coefficients mean_at(std::size_t t, bool of_steps) const {
    Coefficients mean{};
    for (int w = 0; w < plan_.workers; ++w) {
      const Moment& m = moment(w, t);
      for (std::size_t k = 0; k < most_classes; ++k) {
        mean[k] += (m.current[k] - (of_steps ? m.before[k] : 0)) / plan_.workers;
      }
    }
    return mean;
  }

  bool near(const Coefficients& a, const Coefficients& b) const {
    for (std::size_t k = 0; k < plan_.classes(); ++k) {
      const double tolerance = (plan_.wide ? 1e-12 : 2e-5) * (1 + std::abs(a[k]));
      if (std::abs(a[k] - b[k]) > tolerance) return false;
    }
    return true;
  }

  void check(int worker) const {
    // As many values as this tell versions apart for certain.
    const bool telling = plan_.classes() >= 4;
    std::vector<std::size_t> latest(static_cast<std::size_t>(plan_.workers));
    decltype(WorkerStats::ages) ages{};
    std::int64_t absent = 0;
    for (std::size_t t = 0; t < trace(worker).moments.size(); ++t) {
      const Moment& m = moment(worker, t);
      const std::string where = fmt::format("worker {}, combination {}", worker, t);
      if (plan_.algorithm == "none") {
        expect(near(m.after, m.current), where);
        continue;
      }
      if (plan_.algorithm == "allreduce") {
        Coefficients next = mean_at(t, true);
        for (std::size_t k = 0; k < most_classes; ++k) next[k] += m.before[k];
        expect(near(m.after, next), where);
        continue;
      }
      if (plan_.algorithm == "gossip_pga" && (t + 1) % 3 == 0) {
        expect(near(m.after, mean_at(t, false)), where);
        continue;
      }
      const MixingRow row = mixing_row(schedule_.at(static_cast<std::int64_t>(t)), worker);
      std::vector<std::size_t> versions(row.neighbors.size());
      Coefficients sum = m.current;
      const bool found = find(row, 0, static_cast<std::int64_t>(t), latest, own_message(m), sum,
                              m.after, versions, trace(worker).stats.skipped > 0);
      expect(found, where + ": no allowed versions of the neighbors add up to its weights");
      for (std::size_t n = 0; n < versions.size(); ++n) {
        const auto neighbor = static_cast<std::size_t>(row.neighbors[n]);
        if (versions[n] == left_out) {
          ++absent;
          continue;
        }
        if (telling) latest[neighbor] = versions[n];
        const std::int64_t age =
            static_cast<std::int64_t>(t) - publications_[neighbor][versions[n]].round;
        ++ages[static_cast<std::size_t>(
            std::clamp<std::int64_t>(age, 0, static_cast<std::int64_t>(ages.size()) - 1))];
      }
    }
    if (!telling) return;
    expect(absent == trace(worker).stats.skipped, "neighbors left out are counted");
    expect(ages == trace(worker).stats.ages, fmt::format("worker {}: ages are as counted", worker));
  }

  Coefficients own_message(const Moment& m) const {
    return coded(before_step() ? m.before : m.current);
  }

  bool allowed(const Publication& publication, std::int64_t t) const {
    if (plan_.staleness == 0) return publication.round == t;
    return plan_.staleness == unbounded_staleness || publication.round >= t - plan_.staleness;
  }

  /// Versions of the neighbors from the n-th on that take `sum` to `result`.
  bool find(const MixingRow& row, std::size_t n, std::int64_t t,
            const std::vector<std::size_t>& latest, const Coefficients& own,
            const Coefficients& sum, const Coefficients& result, std::vector<std::size_t>& versions,
            bool may_lack) const {
    if (n == row.neighbors.size()) return near(result, sum);
    const auto neighbor = static_cast<std::size_t>(row.neighbors[n]);
    for (std::size_t v = latest[neighbor]; v < publications_[neighbor].size(); ++v) {
      const Publication& publication = publications_[neighbor][v];
      if (!allowed(publication, t)) continue;
      Coefficients next = sum;
      for (std::size_t k = 0; k < most_classes; ++k) {
        next[k] += row.weights[n] * (publication.message[k] - own[k]);
      }
      versions[n] = v;
      if (find(row, n + 1, t, latest, own, next, result, versions, may_lack)) return true;
    }
    versions[n] = left_out;
    return may_lack && find(row, n + 1, t, latest, own, sum, result, versions, may_lack);
  }

  static constexpr std::size_t left_out = ~std::size_t{0};

  const Plan& plan_;
  const std::vector<Trace>& traces_;
  Schedule schedule_;
  std::vector<std::vector<Publication>> publications_;  ///< by worker
};

void run(const Plan& plan) {
  std::vector<Trace> traces(static_cast<std::size_t>(plan.workers));
  local::run(plan.workers, [&](const Group& group) {
    Trace& mine = traces[static_cast<std::size_t>(group.rank())];
    if (plan.wide) {
      work<double>(group, plan, mine);
    } else {
      work<float>(group, plan, mine);
    }
  });
  Oracle(plan, traces).check();
}

}  // namespace

TEST_CASE("whatever is chosen, every combination is one of versions that were allowed") {
  const char* text = std::getenv("FAST_SOAK_SECONDS");
  const Deadline enough(Seconds(text == nullptr ? 10 : std::strtod(text, nullptr)));
  const std::uint64_t first = test_seed(1);
  std::uint64_t seed = first;
  for (; seed == first || !enough.expired(); ++seed) {
    const Plan plan = plan_of(seed);
    INFO(plan.text());
    REQUIRE_NOTHROW(run(plan));
  }
  fmt::print("soak test: seeds {} to {}\n", first, seed - 1);
}
