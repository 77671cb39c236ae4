#include "support/golden.hpp"

#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fast/topology/graphs.hpp>
#include <fast/worker/worker.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace fast::testing {

void expect(bool condition, std::string_view what) {
  if (!condition) throw std::runtime_error(std::string(what));
}

namespace {

std::string unpacked(const char* path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path, "rb"), gzclose);
  expect(file != nullptr, path);
  std::string text;
  std::array<char, 1 << 16> part;
  int count = 0;
  while ((count = gzread(file.get(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  expect(count == 0, path);
  return text;
}

void read_cases(const char* path, std::vector<GoldenCase>& cases) {
  const auto json = nlohmann::json::parse(unpacked(path));
  const auto known = algorithm::names();
  for (const auto& entry : json) {
    GoldenCase c;
    c.algorithm = entry["algorithm"];
    if (std::find(known.begin(), known.end(), c.algorithm) == known.end()) continue;
    c.workers = entry["workers"];
    c.rounds = entry["rounds"];
    const auto rounds = static_cast<std::size_t>(c.rounds);
    c.rates = entry.value("rates", std::vector<double>(rounds, entry["lr"].get<double>()));
    for (const auto& [key, value] : entry["parameters"].items()) {
      c.parameters.emplace(key, value.dump());
    }
    const bool replaces_momentum =
        c.algorithm == "quasi_global_momentum" || c.algorithm == "decentlam";
    if (entry.contains("inner_momentum")) {
      c.momentum = entry["inner_momentum"];
    } else if (!replaces_momentum) {
      c.momentum = entry["parameters"].value("momentum", 0.0);
      c.parameters.erase("momentum");
    }
    c.codec = entry.value("codec", c.codec);
    c.steps = entry.value("steps", std::vector<int>(static_cast<std::size_t>(c.workers), 1));
    c.weights = entry["weights"].get<std::vector<Matrix>>();
    if (entry.contains("sites")) {
      c.every = entry["sites"]["every"];
      c.workers_per_site = entry["sites"]["workers"];
      c.links = entry["sites"]["links"];
    }
    c.a = entry["a"].get<Matrix>();
    c.b = entry["b"].get<Matrix>();
    c.start = entry["start"].get<Matrix>();
    c.trajectory = entry["trajectory"].get<std::vector<Matrix>>();
    c.text =
        fmt::format("{} on {} workers, {} matrices, {}, {}, steps {}", c.algorithm, c.workers,
                    c.weights.size(), entry["parameters"].dump(), c.codec, fmt::join(c.steps, ","));
    cases.push_back(std::move(c));
  }
}

}  // namespace

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  read_cases(FAST_TEST_DATA "/golden.json.gz", cases);
  read_cases(FAST_TEST_DATA "/golden_outer.json.gz", cases);
  read_cases(FAST_TEST_DATA "/golden_rules.json.gz", cases);
  return cases;
}

std::vector<GoldenCase> extra_golden_cases() {
  std::vector<GoldenCase> cases;
  read_cases(FAST_TEST_DATA "/golden_extra.json.gz", cases);
  return cases;
}

Schedule golden_schedule(const GoldenCase& golden) {
  if (golden.every > 0) {
    const auto sites = schedule::sites(golden.every, golden.workers_per_site, golden.links);
    return sites.make(golden.workers);
  }
  std::vector<Topology> topologies;
  for (const Matrix& w : golden.weights) {
    std::vector<std::vector<int>> in(w.size());
    Matrix weights(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      for (std::size_t j = 0; j < w.size(); ++j) {
        if (i == j || w[i][j] == 0) continue;
        in[i].push_back(static_cast<int>(j));
        weights[i].push_back(w[i][j]);
      }
    }
    std::vector<double> self;
    for (std::size_t i = 0; i < w.size(); ++i) self.push_back(w[i][i]);
    topologies.emplace_back("golden", in, weights, self);
  }
  const auto period = static_cast<std::int64_t>(topologies.size());
  return {"golden", golden.workers, period, [topologies, period](std::int64_t round) {
            return topologies[static_cast<std::size_t>(round % period)];
          }};
}

template <class T>
void run_golden(const Group& group, const GoldenCase& golden, double tolerance) {
  const auto me = static_cast<std::size_t>(group.rank());
  const std::vector<double>&a = golden.a[me], &b = golden.b[me];
  std::vector<T> x(golden.start[me].begin(), golden.start[me].end());
  std::vector<T> m(x.size());
  const auto steps = static_cast<std::size_t>(golden.steps[me]);
  WorkerOptions options;
  options.algorithm = algorithm::by_name(golden.algorithm, golden.parameters);
  options.codec = codec::by_name(golden.codec);
  options.initial = Initial::as_is;
  options.deadline = Seconds(30);
  Worker worker(group, golden_schedule(golden), {view_of("x", std::span(x))}, options);
  for (int t = 0; t < golden.rounds; ++t) {
    const double rate = golden.rates[static_cast<std::size_t>(t)];
    worker.step(
        [&] {
          for (std::size_t step = 0; step < x.size() * steps; ++step) {
            const std::size_t e = step % x.size();
            const T gradient = static_cast<T>(a[e]) * (x[e] - static_cast<T>(b[e]));
            m[e] = static_cast<T>(golden.momentum) * m[e] + gradient;
            x[e] -= static_cast<T>(rate) * m[e];
          }
        },
        {.learning_rate = rate});
    const Matrix& expected = golden.trajectory[static_cast<std::size_t>(t) + 1];
    double scale = 0;
    for (const auto& row : expected) {
      for (const double value : row) scale = std::max(scale, std::abs(value));
    }
    for (std::size_t e = 0; e < x.size(); ++e) {
      const double error = std::abs(static_cast<double>(x[e]) - expected[me][e]) / scale;
      expect(error <= tolerance,
             fmt::format("{}: worker {} after round {}, element {}: {} instead of {}", golden.text,
                         me, t + 1, e, x[e], expected[me][e]));
    }
  }
}

template void run_golden<float>(const Group&, const GoldenCase&, double);
template void run_golden<double>(const Group&, const GoldenCase&, double);

}  // namespace fast::testing
