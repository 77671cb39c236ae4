// The chosen columns of a CSV text, as numbers and texts.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fast::data {

/// Which columns of a table are wanted.
struct CsvColumns {
  std::string target;
  std::vector<std::string> features;  ///< empty: all other columns of numbers; see read_csv()
};

/// Rows of features and one target.
class CsvTable {
 public:
  /// Throws Error as read_csv() does.
  CsvTable(std::string_view text, std::string path, const CsvColumns& columns);

  std::size_t rows() const { return lines_.size(); }
  std::size_t width() const { return names_.size(); }
  const std::vector<std::string>& features() const { return names_; }
  const std::vector<float>& values() const { return values_; }  ///< rows × width
  /// Columns that are neither the target nor features though nobody has chosen the features, each
  /// with the reason: `price: "1,234.5" is not a number`.
  std::vector<std::string> unused() const;
  const std::vector<std::string>& targets() const { return targets_; }  ///< as they are written
  /// "FILE:LINE: column 3 (y)", of the target of a row.
  std::string place_of_target(std::size_t row) const { return place(lines_[row], target_); }
  const std::string& path() const { return path_; }

 private:
  std::string place(std::size_t line, std::size_t column) const;
  using Fields = std::vector<std::string_view>;
  void find_columns(const CsvColumns& columns, const Fields& first);
  void check_undecided(const Fields& fields);
  void add(const Fields& fields, std::size_t line);
  float feature(std::string_view field, std::size_t line, std::size_t column);
  void check_resolution() const;

  std::string path_;
  std::vector<std::string> header_;
  std::vector<std::string> names_;     ///< of the features
  std::vector<std::size_t> features_;  ///< their columns
  std::size_t target_ = 0;             ///< its column
  /// The smallest and the largest value of a column.
  struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
  };
  std::vector<Range> ranges_;  ///< of the columns; empty ranges where there is no feature
  /// Columns whose values are missing so far, and the first of these values.
  std::vector<std::pair<std::size_t, std::string>> undecided_;
  /// Columns of other values than numbers, and the first of these values.
  std::vector<std::pair<std::size_t, std::string>> texts_;
  std::vector<float> values_;
  std::vector<std::string> targets_;
  std::vector<std::size_t> lines_;  ///< of each row
};

/// True for a field that stands for a value that is not known: an empty one, NA, N/A, <NA>, null,
/// None, ?, ., -, and the errors of spreadsheets, as #N/A and #DIV/0!.
bool is_missing(std::string_view field);

/// Reads the number of a field, without the spaces around it; false when it is no number. "nan" and
/// "inf" are numbers.
bool read_number(std::string_view field, double& value);

/// Reads a field of a feature: a number, or True and False as 1 and 0.
bool read_feature(std::string_view field, double& value);

}  // namespace fast::data
