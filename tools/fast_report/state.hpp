// How each worker of a run ended.
#pragma once

#include <map>
#include <set>
#include <string>

#include "fast_report/run.hpp"

namespace fast_report {

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

}  // namespace fast_report
