#include "topology/edge_list.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast {
namespace {

template <class... Args>
[[noreturn]] void fail_at(const EdgeList& list, std::size_t edge,
                          fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::topology, "Topology::load: {}:{}: edge {} of {} {}", list.path,
       list.edges[edge].line, edge + 1, list.where,
       fmt::format(format, std::forward<Args>(args)...));
}

int highest_worker(const EdgeList& list) {
  int highest = 0;
  for (const Edge& edge : list.edges) highest = std::max({highest, edge.from, edge.to});
  return highest;
}

void check_edges(const EdgeList& list) {
  std::map<std::pair<int, int>, std::size_t> first;
  for (std::size_t k = 0; k < list.edges.size(); ++k) {
    const Edge& edge = list.edges[k];
    if (edge.weight.has_value() != list.edges[0].weight.has_value()) {
      fail_at(list, k, "has {} weight, edge 1 has {}; give all edges one or none",
              edge.weight ? "a" : "no", edge.weight ? "none" : "one");
    }
    if (edge.from == edge.to && !edge.weight) {
      fail_at(list, k,
              "joins worker {} with itself; leave it out, a worker's own value is always "
              "part of its average",
              edge.from);
    }
    std::pair<int, int> ends(edge.from, edge.to);
    if (!list.directed && ends.first > ends.second) std::swap(ends.first, ends.second);
    const auto [at, is_new] = first.emplace(ends, k);
    if (!is_new) {
      fail_at(list, k, "repeats edge {} ({} to {}{}); name it once", at->second + 1, edge.from,
              edge.to, list.directed ? "" : ", and edges go both ways unless directed = true");
    }
  }
}

void check_fits(const EdgeList& list, int workers, const char* whose, const char* mend) {
  for (std::size_t k = 0; k < list.edges.size(); ++k) {
    const int named = std::max(list.edges[k].from, list.edges[k].to);
    require(named < workers, ErrorKind::topology,
            "Topology::load: {} names worker {}, {} {} (0..{}); {} at least {} workers or edit "
            "edge {} (line {}).",
            list.path, named, whose, workers, workers - 1, mend, highest_worker(list) + 1, k + 1,
            list.edges[k].line);
  }
}

Topology topology_of(const EdgeList& list, int workers) {
  const auto n = static_cast<std::size_t>(workers);
  std::vector<std::vector<int>> in(n);
  std::vector<std::vector<double>> weights(n);
  std::vector<std::optional<double>> self(n);
  const auto add = [&](int from, int to, const std::optional<double>& weight) {
    in[to].push_back(from);
    if (weight) weights[to].push_back(*weight);
  };
  for (const Edge& edge : list.edges) {
    if (edge.from == edge.to) {
      self[edge.to] = edge.weight;
      continue;
    }
    add(edge.from, edge.to, edge.weight);
    if (!list.directed) add(edge.to, edge.from, edge.weight);
  }
  if (list.edges.empty() || !list.edges[0].weight) return {list.name, std::move(in)};

  std::vector<double> self_weights;
  if (std::ranges::any_of(self, &std::optional<double>::has_value)) {
    for (std::size_t i = 0; i < n; ++i) {
      double rest = 1;
      for (const double weight : weights[i]) rest -= weight;
      self_weights.push_back(self[i].value_or(std::max(0.0, rest)));
    }
  }
  return {list.name, std::move(in), std::move(weights), std::move(self_weights)};
}

Topology located(const EdgeList& list, int workers) try {
  return topology_of(list, workers);
} catch (const Error& error) {
  fail(error.kind(), "Topology::load: {}:{}: {}: {}", list.path, list.key_line, list.where,
       error.what());
}

}  // namespace

TopologyRule rule_of(EdgeList list) {
  check_edges(list);
  if (list.workers != 0) check_fits(list, list.workers, "key \"workers\" says", "say");
  const Topology smallest =
      located(list, list.workers != 0 ? list.workers : highest_worker(list) + 1);
  const std::string name = list.name;
  const int natural = smallest.workers();
  return {name,
          [list = std::move(list), smallest](int workers) {
            require(list.workers == 0 || workers == list.workers, ErrorKind::topology,
                    "Topology::load: {} is for {} workers, this run has {}; start {} workers or "
                    "edit key \"workers\".",
                    list.path, list.workers, workers, list.workers);
            check_fits(list, workers, "this run has", "start");
            return Schedule(workers == smallest.workers() ? smallest : located(list, workers));
          },
          natural};
}

namespace {

constexpr int max_dense_workers = 4096;

class Matrix {
 public:
  Matrix(const std::string& path, std::string_view text) : path_(path), rest_(text) {}

  TopologyRule rule() {
    read_banner();
    read_size();
    array_ ? read_array() : read_entries();
    check_end();
    if (is_adjacency()) {
      for (Edge& edge : edges_) edge.weight.reset();
      std::erase_if(edges_, [](const Edge& edge) { return edge.from == edge.to; });
    }
    if (edges_.empty()) fail_here("holds no entries that join two workers; at least 1 is required");
    return rule_of({path_, printable(std::filesystem::path(path_).stem().string()), 1, workers_,
                    !symmetric_, std::move(edges_), "the matrix"});
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::topology, "Topology::load: {}:{}: {}", path_, std::max(1, line_),
         fmt::format(format, std::forward<Args>(args)...));
  }

  bool next_line(std::string_view& line) {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    return true;
  }

  static std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    const char* blanks = " \t\r";
    for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
      const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
      words.push_back(line.substr(at, end - at));
      at = line.find_first_not_of(blanks, end);
    }
    return words;
  }

  // The next line that is neither a comment nor empty.
  std::vector<std::string_view> next_words(const char* wanted) {
    std::string_view line;
    while (next_line(line)) {
      auto words = words_of(line);
      if (!words.empty() && words[0][0] != '%') return words;
    }
    fail_here("ends where {} is required", wanted);
  }

  template <class T>
  T value(std::string_view word, const char* wanted) const {
    T result{};
    if (!reads(word, result)) fail_here("\"{}\", {} is required", word, wanted);
    return result;
  }

  int count(std::string_view word, int low, int high) const {
    const auto found = value<std::int64_t>(word, "a whole number");
    if (found < low || found > high) fail_here("{}, {} to {} is required", found, low, high);
    return static_cast<int>(found);
  }

  void read_banner() {
    std::string_view line;
    next_line(line);
    std::vector<std::string> words;
    for (const std::string_view word : words_of(line)) {
      words.push_back(in_small_letters(word));
    }
    if (words.size() != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix") {
      fail_here("no \"%%MatrixMarket matrix coordinate real general\" or alike");
    }
    array_ = words[2] == "array";
    pattern_ = words[3] == "pattern";
    symmetric_ = words[4] == "symmetric";
    if (!array_ && words[2] != "coordinate") {
      fail_here("format \"{}\"; choose coordinate or array", words[2]);
    }
    const bool numbers = words[3] == "real" || words[3] == "double" || words[3] == "integer";
    if ((!numbers && !pattern_) || (array_ && pattern_)) {
      fail_here("field \"{}\"; choose real, integer or pattern", words[3]);
    }
    if (!symmetric_ && words[4] != "general") {
      fail_here("symmetry \"{}\"; choose general or symmetric", words[4]);
    }
  }

  void read_size() {
    const auto words = next_words("a line of sizes");
    if (words.size() != (array_ ? 2u : 3u)) {
      fail_here("{} numbers, rows, columns{} are required", words.size(),
                array_ ? "" : " and entries");
    }
    workers_ = count(words[0], 1, array_ ? max_dense_workers : max_listed_workers);
    const int columns = count(words[1], 1, max_listed_workers);
    if (columns != workers_) {
      fail_here("{} rows and {} columns; a square matrix is required", workers_, columns);
    }
    if (!array_) entries_ = count(words[2], 0, std::numeric_limits<int>::max());
  }

  void add(int row, int column, double weight) {
    if (symmetric_ && column > row) {
      fail_here("entry ({}, {}) above the diagonal of a symmetric matrix; leave it out", row,
                column);
    }
    if (!std::isfinite(weight) || weight < 0) {
      fail_here("the weight {}; weights are finite and not negative", weight);
    }
    if (weight != 0) edges_.push_back({column - 1, row - 1, weight, line_});
  }

  void read_entries() {
    for (int k = 0; k < entries_; ++k) {
      const auto words = next_words("another entry");
      if (words.size() != (pattern_ ? 2u : 3u)) {
        fail_here("{} numbers; row, column{} are required", words.size(),
                  pattern_ ? "" : " and weight");
      }
      const int row = count(words[0], 1, workers_), column = count(words[1], 1, workers_);
      add(row, column, pattern_ ? 1 : value<double>(words[2], "a number"));
    }
  }

  void read_array() {
    for (int column = 1; column <= workers_; ++column) {
      for (int row = symmetric_ ? column : 1; row <= workers_; ++row) {
        const auto words = next_words("another entry");
        if (words.size() != 1) fail_here("{} numbers; 1 on each line is required", words.size());
        add(row, column, value<double>(words[0], "a number"));
      }
    }
  }

  void check_end() {
    std::string_view line;
    while (next_line(line)) {
      const auto words = words_of(line);
      if (!words.empty() && words[0][0] != '%') fail_here("more entries than the sizes tell");
    }
  }

  bool is_adjacency() const {
    if (pattern_) return true;
    std::vector<int> in_row(static_cast<std::size_t>(workers_));
    bool several = false;
    for (const Edge& edge : edges_) {
      if (edge.weight != 1.0) return false;
      several = several || ++in_row[edge.to] > 1;
      if (symmetric_ && edge.from != edge.to) several = several || ++in_row[edge.from] > 1;
    }
    return several;
  }

  std::string path_;
  std::string_view rest_;
  int line_ = 0, workers_ = 0, entries_ = 0;
  bool array_ = false, pattern_ = false, symmetric_ = false;
  std::vector<Edge> edges_;
};

}  // namespace

TopologyRule rule_in_matrix(const std::string& path, const std::string& text) {
  return Matrix(path, text).rule();
}

}  // namespace fast
