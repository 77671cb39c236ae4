// What was measured after each epoch, as rows of data for charts.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "fast_report/run.hpp"

namespace fast_report {

/// A member of epoch lines, and its name in charts.
struct Measure {
  std::string field, name;
};

/// One value of one worker after one epoch.
struct Point {
  int worker = 0, part = 0;
  std::int64_t epoch = 0;
  double rounds = 0, seconds = 0, value = 0;
  double weight = 1;  ///< in a mean over workers: the samples that it was measured on
};

/// Of the epochs in which the field was measured, by worker. A long run is thinned to
/// `most_points` of each worker.
std::vector<Point> points(const Run& run, const std::string& field);
inline constexpr std::size_t most_points = 400;

/// The mean over the workers that measured it, by weight: one point an epoch and part, ascending.
/// `worker` is how many they are. (Each worker tests the mean model on its own part of the
/// samples.)
std::vector<Point> means(const std::vector<Point>& points);
/// The same of a run. Of a run without an end, the epochs that some worker with the field has not
/// finished yet are left out: they would be means of the fastest workers. Workers that are lost,
/// suspected or have left do not count.
std::vector<Point> means(const Run& run, const std::string& field);

/// Whether a run has values of both fields, and the same ones.
bool are_same(const Run& run, const std::string& field, const std::string& other);

/// The mean after the last epoch of means().
std::optional<double> last_mean(const Run& run, const std::string& field);

/// Rows {worker, part, epoch, seconds, measure, value}, and the same of the means in `mean`.
struct Curves {
  nlohmann::json workers = nlohmann::json::array(), mean = nlohmann::json::array();
};
/// A measure whose values are those of a later one is left out: without held-out samples, the
/// validation is the test.
Curves curves(const Run& run, const std::vector<Measure>& measures);

/// Rows of the means of several runs: {measure, part, epoch, rounds, seconds, value}, where
/// `measure` is the run's name.
nlohmann::json joint_means(const std::vector<Run>& runs, const std::vector<std::string>& names,
                           const std::string& field);

/// Rows {worker, part, seconds, value}: samples per second of each worker, in intervals where there
/// are some, else in epochs.
nlohmann::json throughput(const Run& run);

// The distance between the replicas, and how fast averaging alone would reduce it.

/// A round of averaging multiplies the consensus distance by at most 1 - gap.
struct Contraction {
  std::optional<double> gap;  ///< in (0, 1]
  std::string why_not;        ///< a sentence, when there is no gap

  /// Rounds of averaging alone after which the distance is a tenth. 0 when one round is exact.
  double rounds_per_tenth() const;
};

/// The gap of the run's mixing matrix: as the run told it (a topology may follow the hosts), else
/// recomputed from its options.
/// There is one only for a static topology with doubly stochastic weights, for the rules that
/// average once a round and for staleness 0.
Contraction contraction(const Run& run);

/// From the largest value at the rate 1 - gap down to the smallest positive value, then level to
/// the last round. Rows {rounds, value}: two or three; none when all values are equal.
nlohmann::json prediction(const std::vector<Point>& means, double gap);

}  // namespace fast_report
