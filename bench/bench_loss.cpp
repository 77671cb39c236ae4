// How near the mean model of each rule comes to the optimum when messages are lost: every worker
// has a quadratic of its own, and each message is lost with a probability. Its reader goes on
// without it.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/worker.hpp>
#include <optional>

#include "exchange/group_impl.hpp"
#include "report.hpp"

using namespace fast;

namespace {

constexpr std::size_t elements = 20;

struct Options {
  int workers = 8, seeds = 5;
  std::int64_t rounds = 1000;
  double rate = 0.05;
  std::vector<double> losses{0, 1, 10};  ///< %
  std::vector<std::string> rules;
};

void describe(CLI::App& app, Options& o) {
  app.add_option("--workers", o.workers)->check(CLI::Range(2, 64))->capture_default_str();
  app.add_option("--seeds", o.seeds, "runs of each kind")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--rounds", o.rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rate", o.rate, "learning rate of plain gradient steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--loss", o.losses, "% of the messages that are lost")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--rule", o.rules, "NAME or NAME:OPTION=VALUE [all rules]");
}

/// Some messages do not come to this worker. Which ones follows from the seed.
class LossyExchange final : public Exchange {
 public:
  LossyExchange(std::unique_ptr<Exchange> whole, int rank, double share, std::uint64_t seed)
      : whole_(std::move(whole)), rank_(rank), share_(share), seed_(seed) {}
  MutablePayload acquire() override { return whole_->acquire(); }
  void publish(std::int64_t round, bool with_weights) override {
    whole_->publish(round, with_weights);
  }
  void keep_weights() override { whole_->keep_weights(); }
  void flush() override { whole_->flush(); }
  Payload published() const override { return whole_->published(); }
  std::uint64_t sequence() const override { return whole_->sequence(); }
  void begin_fetch(std::int64_t round) override { whole_->begin_fetch(round); }
  std::vector<Arrival> fetch(std::int64_t round) override {
    return some_of(whole_->fetch(round), round);
  }
  std::vector<Arrival> fetch_early(std::int64_t round) override {
    return some_of(whole_->fetch_early(round), round);
  }
  bool await(Arrival& arrival, std::size_t bytes) override { return whole_->await(arrival, bytes); }
  Arrival::State look(int neighbor, std::int64_t round) override {
    return is_lost(neighbor, round) ? Arrival::State::suspect : whole_->look(neighbor, round);
  }
  bool is_intact(const Arrival& arrival) const override { return whole_->is_intact(arrival); }
  void complete(std::int64_t rounds) override { whole_->complete(rounds); }

 private:
  bool is_lost(int from, std::int64_t round) const {
    const std::uint64_t edge =
        mix_seed(seed_, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(rank_));
    return Rng(mix_seed(edge, static_cast<std::uint64_t>(round))).uniform() < share_;
  }
  std::vector<Arrival> some_of(std::vector<Arrival> arrivals, std::int64_t round) const {
    for (Arrival& arrival : arrivals)
      if (is_lost(arrival.worker, round)) arrival.state = Arrival::State::suspect;
    return arrivals;
  }

  std::unique_ptr<Exchange> whole_;
  int rank_;
  double share_;
  std::uint64_t seed_;
};

class LossyGroup final : public GroupImpl {
 public:
  LossyGroup(std::shared_ptr<GroupImpl> whole, double share, std::uint64_t seed)
      : whole_(std::move(whole)), share_(share), seed_(seed) {}
  int rank() const override { return whole_->rank(); }
  int size() const override { return whole_->size(); }
  std::string name() const override { return whole_->name(); }
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    return whole_->all_gather(bytes, deadline, purpose);
  }
  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) override {
    return whole_->allocate(bytes_per_worker, deadline);
  }
  std::unique_ptr<Exchange> over(std::unique_ptr<Exchange> exchange) override {
    return std::make_unique<LossyExchange>(std::move(exchange), rank(), share_, seed_);
  }

 private:
  std::shared_ptr<GroupImpl> whole_;
  double share_;
  std::uint64_t seed_;
};

using Vector = std::vector<double>;

/// f_i(x) = ½ Σ_e a_ie (x_e - b_ie)², with a in [.5, 1.5] and b from N(0, 1).
struct Problem {
  std::vector<Vector> a, b;
  Vector optimum = Vector(elements);

  Problem(int workers, std::uint64_t seed) {
    Rng rng(seed);
    Vector weights(elements);
    for (int i = 0; i < workers; ++i) {
      a.emplace_back(elements);
      b.emplace_back(elements);
      for (std::size_t e = 0; e < elements; ++e) {
        a.back()[e] = 0.5 + rng.uniform();
        b.back()[e] = rng.normal();
        optimum[e] += a.back()[e] * b.back()[e];
        weights[e] += a.back()[e];
      }
    }
    for (std::size_t e = 0; e < elements; ++e) optimum[e] /= weights[e];
  }
};

struct Kind {
  std::string rule, topology;
  algorithm::Parameters parameters;
};

Kind kind_of(const std::string& text) {
  Kind kind;
  const std::size_t colon = text.find(':');
  kind.rule = text.substr(0, colon);
  if (colon != std::string::npos)
    kind.parameters = algorithm::parameters_from({text.substr(colon + 1)});
  return kind;
}

/// All workers' weights at the end.
std::vector<Vector> trained(const Options& o, const Kind& kind, const Problem& problem,
                            double share, std::uint64_t seed) {
  std::vector<Vector> all(static_cast<std::size_t>(o.workers), Vector(elements));
  local::run(o.workers, [&](const Group& whole) {
    const Group group =
        GroupImpl::group(std::make_shared<LossyGroup>(GroupImpl::shared(whole), share, seed));
    const auto me = static_cast<std::size_t>(group.rank());
    Vector& x = all[me];
    WorkerOptions options;
    options.algorithm = algorithm::by_name(kind.rule, kind.parameters);
    options.deadline = Seconds(30);
    const TensorView view{
        .name = "x", .data = x.data(), .shape = {std::int64_t{elements}}, .dtype = DType::f64};
    Worker worker(group, topology_by_name(kind.topology), {view}, options);
    for (std::int64_t round = 0; round < o.rounds; ++round) {
      worker.begin_round();
      for (std::size_t e = 0; e < elements; ++e)
        x[e] -= o.rate * problem.a[me][e] * (x[e] - problem.b[me][e]);
      worker.end_round({.learning_rate = o.rate});
    }
    worker.await_finish();
  });
  return all;
}

/// Relative to the optimum's norm: of the mean model, and of the worst worker.
struct Errors {
  double mean = 0, worst = 0;
};

Errors errors_of(const std::vector<Vector>& all, const Vector& optimum) {
  const auto distance = [&](const Vector& x) {
    double squares = 0, norm = 0;
    for (std::size_t e = 0; e < elements; ++e) {
      squares += (x[e] - optimum[e]) * (x[e] - optimum[e]);
      norm += optimum[e] * optimum[e];
    }
    return std::sqrt(squares / norm);
  };
  Vector mean(elements);
  Errors errors;
  for (const Vector& x : all) {
    for (std::size_t e = 0; e < elements; ++e) mean[e] += x[e] / static_cast<double>(all.size());
    const double error = distance(x);
    if (!(error <= errors.worst)) errors.worst = error;  // also NaN
  }
  errors.mean = distance(mean);
  return errors;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The first of these topologies that the rule takes; none with the reason of the last refusal.
std::optional<Kind> on_a_topology(const Options& o, Kind kind, const Problem& problem) {
  Options one = o;
  one.rounds = 1;
  std::string reason;
  for (const char* topology : {"ring", "grid1d", "random_matchings", "complete"}) {
    kind.topology = topology;
    try {
      trained(one, kind, problem, 0, 1);
      return kind;
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  fmt::print(stderr, "left out: {}: {}\n", kind.rule, reason);
  return std::nullopt;
}

bench::Row row_of(const Options& o, const Kind& kind) {
  bench::Row row{{"rule", kind.rule}, {"topology", kind.topology}};
  for (const double loss : o.losses) {
    std::vector<double> means, worst;
    int ended = 0;
    for (int seed = 1; seed <= o.seeds; ++seed) {
      const auto drawn = static_cast<std::uint64_t>(seed);
      const Problem problem(o.workers, drawn);
      try {
        const Errors errors =
            errors_of(trained(o, kind, problem, loss / 100, drawn), problem.optimum);
        means.push_back(errors.mean);
        worst.push_back(errors.worst);
      } catch (const Error&) {
        ++ended;
      }
    }
    const auto text = [&](const std::vector<double>& values) {
      return ended > 0 ? fmt::format("diverges ({} of {})", ended, o.seeds)
                       : fmt::format("{:.1e}", median(values));
    };
    row[fmt::format("mean, {} %", loss)] = text(means);
    row[fmt::format("worst, {} %", loss)] = text(worst);
  }
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Final errors, relative to the optimum, when messages are lost: of the mean model and of the "
      "worst worker, medians over seeds"};
  Options options;
  bench::Report report("bench_loss");
  describe(app, options);
  report.add_options(app);
  CLI11_PARSE(app, argc, argv);
  if (options.rules.empty())
    for (const std::string_view name : algorithm::names()) options.rules.emplace_back(name);
  for (const std::string& rule : options.rules) {
    const auto kind = on_a_topology(options, kind_of(rule), Problem(options.workers, 1));
    if (!kind) continue;
    report.add(row_of(options, *kind));
    report.save();
  }
  return report.finish();
}
