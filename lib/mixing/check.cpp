#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>

#include "mixing/needs.hpp"
#include "mixing/rows.hpp"
#include "topology/hosts.hpp"

namespace fast {
namespace {

constexpr double tolerance = 1e-9;

using Lists = std::vector<std::vector<int>>;

// The first worker that is not reached from worker 0 along the lists, or -1.
int first_unreached(const Lists& lists) {
  std::vector<bool> seen(lists.size());
  std::vector<int> open = {0};
  seen[0] = true;
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    for (const int j : lists[i]) {
      if (seen[j]) continue;
      seen[j] = true;
      open.push_back(j);
    }
  }
  const auto at = std::find(seen.begin(), seen.end(), false);
  return at == seen.end() ? -1 : static_cast<int>(at - seen.begin());
}

bool is_half_of_a_pair(const MixingRow& row) {
  return row.neighbors.empty() ||
         (row.neighbors.size() == 1 && std::abs(row.weights[0] - 0.5) < tolerance);
}

bool is_tree(const MixingRows& rows) {
  std::size_t ends = 0;
  for (const MixingRow& row : rows) ends += row.neighbors.size();
  if (ends != 2 * (rows.size() - 1)) return false;
  Lists lists;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const int j : rows[i].neighbors)
      if (!std::ranges::binary_search(rows[j].neighbors, static_cast<int>(i))) return false;
    lists.push_back(rows[i].neighbors);
  }
  return first_unreached(lists) < 0;
}

bool is_equal_share(const MixingRow& row, std::size_t workers) {
  const double share = 1 / static_cast<double>(workers);
  return row.neighbors.size() + 1 == workers && std::abs(row.self - share) < tolerance &&
         std::all_of(row.weights.begin(), row.weights.end(),
                     [share](double weight) { return std::abs(weight - share) < tolerance; });
}

class Checker {
 public:
  Checker(const Schedule& schedule, WeightRule rule, bool lazy)
      : schedule_(schedule),
        rule_(rule),
        lazy_(lazy),
        in_(workers()),
        out_(workers()),
        columns_(workers()) {}

  MixingCheck run() {
    const std::int64_t rounds = schedule_.period_or(looked_at_of_endless);
    for (std::int64_t t = 0; t < rounds; ++t) check_round(t);
    average_columns(rounds);
    check_connected();
    return std::move(found_);
  }

 private:
  std::size_t workers() const { return static_cast<std::size_t>(schedule_.workers()); }

  std::string in_round(std::int64_t t) const {
    return schedule_.is_static() ? "" : fmt::format("in round {} ", t);
  }

  template <class... Args>
  void note(bool& holds, fmt::format_string<Args...> format, Args&&... args) {
    if (holds) found_.findings.push_back(fmt::format(format, std::forward<Args>(args)...));
    holds = false;
  }

  void check_round(std::int64_t t) {
    const Topology topology = schedule_.at(t);
    const MixingRows rows = mixing_rows(topology, rule_, lazy_);
    std::vector<double> columns(workers());
    for (int i = 0; i < topology.workers(); ++i) {
      const MixingRow& row = rows[i];
      double sum = row.self, least = row.self;
      columns[i] += row.self;
      for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
        const int j = row.neighbors[k];
        sum += row.weights[k];
        least = std::min(least, row.weights[k]);
        columns[j] += row.weights[k];
        if (row.weights[k] <= 0) continue;
        in_[i].push_back(j);
        out_[j].push_back(i);
      }
      if (least < -tolerance) {
        note(found_.nonnegative,
             "{}worker {} gives a weight of {:.6g}, which is negative; lower its other weights",
             in_round(t), i, least);
      }
      if (std::abs(sum - 1) > tolerance) {
        note(found_.rows,
             "{}worker {}'s weights (its row) sum to {:.6g}, required 1; change one of them by "
             "{:.6g}, or use push_sum, which needs columns only",
             in_round(t), i, sum, 1 - sum);
      }
    }
    for (std::size_t j = 0; j < columns.size(); ++j) {
      columns_[j] += columns[j];
      if (std::abs(columns[j] - 1) > tolerance) {
        note(
            found_.columns,
            "{}the weights that others and it itself give to worker {} (its column) sum to {:.6g}, "
            "required 1; choose metropolis on an undirected graph, or push_sum with "
            "uniform_columns",
            in_round(t), j, columns[j]);
      }
    }
    check_symmetric(rows, t);
    found_.tree = found_.tree && is_tree(rows);
    for (const MixingRow& row : rows)
      found_.degree = std::max(found_.degree, static_cast<int>(row.neighbors.size()));
    found_.pairs &= std::all_of(rows.begin(), rows.end(), is_half_of_a_pair);
    found_.complete &= std::all_of(rows.begin(), rows.end(), [this](const MixingRow& row) {
      return is_equal_share(row, workers());
    });
  }

  void average_columns(std::int64_t rounds) {
    const auto is_one = [&](double sum) {
      return std::abs(sum / static_cast<double>(rounds) - 1) <= tolerance;
    };
    found_.columns_on_average = std::all_of(columns_.begin(), columns_.end(), is_one);
    if (found_.columns || !found_.columns_on_average) return;
    for (std::string& finding : found_.findings) {
      const std::size_t advice = finding.find("; choose metropolis");
      if (advice == std::string::npos) continue;
      finding.replace(advice, std::string::npos,
                      fmt::format("; over {} rounds every column sums to 1 on average", rounds));
    }
  }

  void check_symmetric(const MixingRows& rows, std::int64_t t) {
    for (std::size_t i = 0; i < rows.size() && found_.symmetric; ++i) {
      for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
        const double weight = weight_of(rows[rows[i].neighbors[k]], static_cast<int>(i));
        if (std::abs(weight - rows[i].weights[k]) > tolerance) {
          found_.symmetric = false;
          found_.asymmetry = fmt::format(
              "{}worker {} gives worker {} the weight {:.6g} and gets {:.6g}; make the edge go "
              "both ways with one weight, as metropolis does",
              in_round(t), i, rows[i].neighbors[k], rows[i].weights[k], weight);
          return;
        }
      }
    }
  }

  void check_connected() {
    const int deaf = first_unreached(out_), mute = first_unreached(in_);
    if (deaf >= 0) {
      note(found_.connected,
           "worker 0's values never reach worker {}; add an edge that leads to it", deaf);
    } else if (mute >= 0) {
      note(found_.connected,
           "worker {}'s values never reach worker 0; add an edge that leads from it", mute);
    }
    if (!found_.connected) found_.unconnected = found_.findings.back();
  }

  const Schedule& schedule_;
  WeightRule rule_;
  bool lazy_;
  Lists in_, out_;
  std::vector<double> columns_;  // their sums over all rounds
  MixingCheck found_;
};

std::string what_is_no_pair(const Schedule& schedule, WeightRule rule, bool lazy) {
  const std::int64_t rounds = schedule.period_or(looked_at_of_endless);
  for (std::int64_t t = 0; t < rounds; ++t) {
    const Topology topology = schedule.at(t);
    for (int i = 0; i < topology.workers(); ++i) {
      const MixingRow row = mixing_row(topology, i, rule, lazy);
      if (is_half_of_a_pair(row)) continue;
      return fmt::format(
          "in round {} worker {} reads {} workers with weight {:.6g}, required is 1 with weight "
          "0.5; choose alternating_pairs or random_matchings",
          t, i, row.neighbors.size(), row.weights[0]);
    }
  }
  return {};
}

std::string what_is_too_low(const Schedule& schedule, WeightRule rule, bool lazy, double above) {
  if (schedule.workers() == 1) return {};
  const Spectrum found = spectrum(schedule, rule, lazy);
  const double least = found.smallest_eigenvalue.value_or(-1);
  if (found.converged && least > above + tolerance) return {};
  return fmt::format(
      "the smallest eigenvalue of its weights is {}{:.13g}, it must exceed {:.6g} by more than {}; "
      "use lazy weights, (I+W)/2",
      found.converged ? "" : "at most ", least, above, tolerance);
}

}  // namespace

std::string missing_of_tree(const MixingCheck& found, int degree) {
  if (!found.tree)
    return "a tree, whose edges go both ways and close no cycle: grid1d, tree and star are trees";
  if (found.degree <= degree) return {};
  return fmt::format(
      "workers with at most {} neighbors, not {}: its option degree allows more; grid1d has 2, "
      "tree 3",
      degree, found.degree);
}

MixingCheck check_mixing(const Schedule& schedule, WeightRule rule, bool lazy) {
  return Checker(schedule, rule, lazy).run();
}

void require_mixing(const Schedule& schedule, WeightRule rule, bool lazy, const MixingNeeds& needs,
                    const std::string& algorithm) {
  const MixingCheck found = check_mixing(schedule, rule, lazy);
  const bool columns =
      (found.columns || !needs.columns) && (found.columns_on_average || !needs.columns_on_average);
  const bool holds = (found.rows || !needs.rows) && columns &&
                     (found.symmetric || !needs.symmetric) &&
                     (found.connected || !needs.connected) && found.nonnegative;
  const auto refuse = [&](const std::string& why) {
    if (!why.empty()) {
      fail(ErrorKind::topology, "{}: {} does not fit: {}", algorithm, schedule.name(), why);
    }
  };
  if (holds) {
    const bool still = schedule.is_static() || !(needs.unchanging || needs.eigenvalues_above);
    refuse(still ? "" : "it changes from round to round; choose a static topology");
    if (needs.pairs && !found.pairs) refuse(what_is_no_pair(schedule, rule, lazy));
    if (needs.tree_of > 0) {
      const std::string lacks = missing_of_tree(found, needs.tree_of);
      refuse(lacks.empty() ? "" : fmt::format("it needs {}", lacks));
    }
    if (needs.complete && !found.complete) {
      refuse("not every worker reads all others with one weight; choose the topology complete");
    }
    if (needs.sites && host_edges_of(schedule.at(0)) == HostEdges::Kind::anywhere) {
      refuse(
          "it needs rounds within sites and rounds between them; choose sites or "
          "hierarchical_one_peer");
    }
    if (needs.eigenvalues_above) {
      refuse(what_is_too_low(schedule, rule, lazy, *needs.eigenvalues_above));
    }
    return;
  }
  MixingCheck only = found;
  if (!found.symmetric) only.findings.push_back(found.asymmetry);
  std::erase_if(only.findings, [&](const std::string& finding) {
    const auto about = [&](const char* text) { return finding.find(text) != std::string::npos; };
    return (about("(its row)") && !needs.rows) || (about("(its column)") && columns) ||
           (about(" and gets ") && !needs.symmetric) || (about("never reach") && !needs.connected);
  });
  refuse(only.findings.front());
}

}  // namespace fast
