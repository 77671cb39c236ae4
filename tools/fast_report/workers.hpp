// The workers of a run: how each ended, and who reads whom.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <string>

#include "fast_report/run.hpp"

namespace fast_report {

/// How each worker of a run ended.
enum class State {
  finished,   ///< it wrote its end
  stopped,    ///< it was asked to stop, and did
  left,       ///< it was asked to leave, and did
  failed,     ///< it ended with an error
  no_end,     ///< it wrote no end: it was killed, or it still trains
  suspected,  ///< others took it for dead last, and it wrote no end
  lost,       ///< the others ended without it
  no_data,    ///< it left no line
};
std::string name(State state);

struct WorkerState {
  State state = State::no_data;
  std::string detail;  ///< what else is known, as a sentence; mostly empty
};

/// Of every rank below run.size and of every worker with lines, in the newest part.
std::map<int, WorkerState> states(const Run& run);

/// The workers that others name as lost at the end of the newest part.
std::set<int> named_lost(const Run& run);

/// A picture of who reads whom: places of workers, and edges with waits.
struct Place {
  double x = 0, y = 0;
};

/// Places of workers: on a grid when the topology's name ends with its sides ("torus 2x4"), else on
/// a circle, clockwise from the top.
class Places {
 public:
  Places(int workers, const std::string& topology);

  Place at(int worker) const;
  /// Where the half of the edge from `reader` towards `peer` ends: halfway, or outside of the grid
  /// for an edge that leaves at one side and comes back at the other.
  Place halfway(int reader, int peer) const;
  bool is_grid() const { return columns_ > 0; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }

 private:
  int workers_, rows_ = 0, columns_ = 0;
};

/// Rows for charts.
struct Network {
  nlohmann::json nodes = nlohmann::json::array();  ///< {worker, x, y, state, ...}
  /// {x, y, x2, y2, worker, peer, waited_s, share}: from a reader halfway to the worker that it
  /// reads. `share`: of the reader's time that it waited for that worker, 0..1.
  nlohmann::json edges = nlohmann::json::array();
  double width = 1, height = 1;  ///< of what is drawn, in units of the distance between neighbors
  bool is_grid = false;
};
Network network(const Run& run, const std::map<int, WorkerState>& states);

}  // namespace fast_report
