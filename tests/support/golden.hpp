// Golden trajectories: cases of tests/data/golden.json.gz, golden_outer.json.gz,
// golden_rules.json.gz and golden_extra.json.gz, made by independent implementations in NumPy (see
// docs/reference/algorithms.md), run through the real Worker. Checks throw, so that they may run on
// any thread or rank.
#pragma once

#include <fast/algorithm/rules.hpp>
#include <fast/exchange/group.hpp>
#include <fast/topology/topology.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fast::testing {

using Matrix = std::vector<std::vector<double>>;

struct GoldenCase {
  std::string algorithm;
  int workers = 0;
  int rounds = 0;
  std::vector<double> rates;         ///< of the local steps, by round
  double momentum = 0;               ///< of the worker's own optimizer
  algorithm::Parameters parameters;  ///< of the rule
  std::string codec = "identity";
  std::vector<int> steps;       ///< local steps of a round, by worker
  std::vector<Matrix> weights;  ///< of round t, cycled; empty: of sites
  std::int64_t every = 0;       ///< of the topology sites, as the next two
  int workers_per_site = 0, links = 0;
  Matrix a, b, start;              ///< f_i(x) = ½ (x - b_i)ᵀ diag(a_i) (x - b_i)
  std::vector<Matrix> trajectory;  ///< [round][worker]
  std::string text;                ///< the case's parameters, for messages
};

/// The cases of those algorithms that the library has.
std::vector<GoldenCase> golden_cases();
/// With a codec, or with several local steps in a round.
std::vector<GoldenCase> extra_golden_cases();

/// The matrices as a schedule with given weights, or the topology sites.
Schedule golden_schedule(const GoldenCase& golden);

/// Runs this worker's part; throws std::runtime_error at the first value that is off by more than
/// `tolerance`, relative to the largest value of the round.
template <class T>
void run_golden(const Group& group, const GoldenCase& golden, double tolerance);

/// Throws std::runtime_error.
void expect(bool condition, std::string_view what);

}  // namespace fast::testing
