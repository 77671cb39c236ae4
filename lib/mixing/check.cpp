#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/mixing/check.hpp>

namespace fast {
namespace {

constexpr double tolerance = 1e-9;
constexpr std::int64_t rounds_of_endless = 64;

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

class Checker {
 public:
  Checker(const Schedule& schedule, WeightRule rule, bool lazy)
      : schedule_(schedule), rule_(rule), lazy_(lazy), in_(workers()), out_(workers()) {}

  MixingCheck run() {
    const std::int64_t rounds = schedule_.period() > 0 ? schedule_.period() : rounds_of_endless;
    for (std::int64_t t = 0; t < rounds; ++t) check_round(t);
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
    std::vector<MixingRow> rows;
    std::vector<double> columns(workers());
    for (int i = 0; i < topology.workers(); ++i) {
      rows.push_back(mixing_row(topology, i, rule_, lazy_));
      const MixingRow& row = rows.back();
      double sum = row.self, least = row.self;
      columns[i] += row.self;
      for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
        const int j = row.neighbors[k];
        sum += row.weights[k];
        least = std::min(least, row.weights[k]);
        columns[j] += row.weights[k];
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
  }

  void check_symmetric(const std::vector<MixingRow>& rows, std::int64_t t) {
    for (std::size_t i = 0; i < rows.size() && found_.symmetric; ++i) {
      for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
        const MixingRow& other = rows[rows[i].neighbors[k]];
        const auto back =
            std::lower_bound(other.neighbors.begin(), other.neighbors.end(), static_cast<int>(i));
        const bool there = back != other.neighbors.end() && *back == static_cast<int>(i);
        const double weight = there ? other.weights[back - other.neighbors.begin()] : 0;
        if (std::abs(weight - rows[i].weights[k]) > tolerance) {
          note(found_.symmetric,
               "{}worker {} gives worker {} the weight {:.6g} and gets {:.6g}; make the edge go "
               "both ways with one weight, as metropolis does",
               in_round(t), i, rows[i].neighbors[k], rows[i].weights[k], weight);
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
  }

  const Schedule& schedule_;
  WeightRule rule_;
  bool lazy_;
  Lists in_, out_;
  MixingCheck found_;
};

}  // namespace

MixingCheck check_mixing(const Schedule& schedule, WeightRule rule, bool lazy) {
  return Checker(schedule, rule, lazy).run();
}

void require_mixing(const Schedule& schedule, WeightRule rule, bool lazy, const MixingNeeds& needs,
                    const std::string& algorithm) {
  const MixingCheck found = check_mixing(schedule, rule, lazy);
  const bool holds = (found.rows || !needs.rows) && (found.columns || !needs.columns) &&
                     (found.symmetric || !needs.symmetric) &&
                     (found.connected || !needs.connected) && found.nonnegative;
  if (holds) return;
  MixingCheck only = found;
  std::erase_if(only.findings, [&](const std::string& finding) {
    const auto about = [&](const char* text) { return finding.find(text) != std::string::npos; };
    return (about("(its row)") && !needs.rows) || (about("(its column)") && !needs.columns) ||
           (about(" and gets ") && !needs.symmetric) || (about("never reach") && !needs.connected);
  });
  fail(ErrorKind::topology, "{}: {} does not fit: {}", algorithm, schedule.name(),
       only.findings.front());
}

}  // namespace fast
