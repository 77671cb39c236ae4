// The chosen columns of a CSV text, as numbers and texts.
#pragma once

#include <cstddef>
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
  const std::vector<float>& values() const { return values_; }          ///< rows × width
  const std::vector<std::string>& targets() const { return targets_; }  ///< as they are written
  /// "FILE:LINE: column 3 (y)", of the target of a row.
  std::string place_of_target(std::size_t row) const { return place(lines_[row], target_); }
  const std::string& path() const { return path_; }

 private:
  std::string place(std::size_t line, std::size_t column) const;
  void find_columns(const CsvColumns& columns, const std::vector<std::string>& first);
  void check_undecided(const std::vector<std::string>& fields);
  void add(const std::vector<std::string>& fields, std::size_t line);

  std::string path_;
  std::vector<std::string> header_;
  std::vector<std::string> names_;     ///< of the features
  std::vector<std::size_t> features_;  ///< their columns
  std::size_t target_ = 0;             ///< its column
  /// Columns whose values are missing so far, and the first of these values.
  std::vector<std::pair<std::size_t, std::string>> undecided_;
  std::vector<float> values_;
  std::vector<std::string> targets_;
  std::vector<std::size_t> lines_;  ///< of each row
};

/// A field that stands for a value that is not known: empty, NA, N/A, null, None or ?.
bool is_missing(std::string_view field);

/// Of a field, without the spaces around it; false when it is no number. "nan" and "inf" are.
bool read_number(std::string_view field, double& value);

}  // namespace fast::data
