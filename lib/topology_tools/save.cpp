#include <fmt/core.h>
#include <fast/core/error.hpp>
#include <fast/topology_tools/save.hpp>

#include "mixing/rows.hpp"

namespace fast {
namespace {

// Calls entry(row, column, weight) for what is not zero, the diagonal always; of a symmetric matrix
// the lower triangle.
template <class Entry>
void for_each_entry(const MixingRows& rows, bool symmetric, const Entry& entry) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int row = static_cast<int>(i);
    for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
      const int column = rows[i].neighbors[k];
      if (rows[i].weights[k] == 0 || (symmetric && column > row)) continue;
      entry(row, column, rows[i].weights[k]);
    }
    entry(row, row, rows[i].self);
  }
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) result += c;
  }
  return result + '"';
}

std::string toml_edges(const MixingRows& rows) {
  const bool symmetric = is_symmetric(rows, 0);
  std::string text = symmetric ? "edges = [" : "directed = true\nedges = [";
  int last = -1;
  for_each_entry(rows, symmetric, [&](int row, int column, double weight) {
    text += fmt::format("{}[{}, {}, {:#}]",
                        row == last ? ", "
                        : last < 0  ? "\n  "
                                    : ",\n  ",
                        column, row, weight);
    last = row;
  });
  return text + "\n]\n";
}

std::string toml_text(const Schedule& schedule, WeightRule rule, bool lazy) {
  std::string text =
      fmt::format("name = {}\nworkers = {}\n", quoted(schedule.name()), schedule.workers());
  if (schedule.is_static()) return text + toml_edges(mixing_rows(schedule.at(0), rule, lazy));
  for (std::int64_t t = 0; t < schedule.period(); ++t) {
    text += fmt::format("\n[[round]]\nworkers = {}\n", schedule.workers());
    text += toml_edges(mixing_rows(schedule.at(t), rule, lazy));
  }
  return text;
}

std::string matrix_market_text(const Schedule& schedule, WeightRule rule, bool lazy) {
  require(schedule.is_static(), ErrorKind::topology,
          "topology_text: {} changes from round to round, a Matrix Market file holds one matrix; "
          "write a .toml file",
          schedule.name());
  const MixingRows rows = mixing_rows(schedule.at(0), rule, lazy);
  const bool symmetric = is_symmetric(rows, 0);
  std::string entries;
  int count = 0;
  for_each_entry(rows, symmetric, [&](int row, int column, double weight) {
    entries += fmt::format("{} {} {}\n", row + 1, column + 1, weight);
    ++count;
  });
  return fmt::format("%%MatrixMarket matrix coordinate real {}\n{} {} {}\n",
                     symmetric ? "symmetric" : "general", rows.size(), rows.size(), count) +
         entries;
}

}  // namespace

std::string topology_text(const Schedule& schedule, const std::string& path, WeightRule rule,
                          bool lazy) {
  require(schedule.period() > 0, ErrorKind::topology,
          "topology_text: {} never repeats; a file names such a schedule and its seed",
          schedule.name());
  if (path.ends_with(".mtx")) return matrix_market_text(schedule, rule, lazy);
  require(path.ends_with(".toml"), ErrorKind::argument,
          "topology_text: {} does not end in .toml or .mtx, the formats that are written", path);
  return toml_text(schedule, rule, lazy);
}

}  // namespace fast
