#include "topology/matrix_market.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "topology/edge_list.hpp"

namespace fast {
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
