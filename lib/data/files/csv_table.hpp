// The chosen columns of a CSV text, as numbers and texts.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fast::data {

// Records of a text of comma-separated values (RFC 4180).

/// Fields may be quoted; a quoted field may hold commas, line ends and doubled quotes. Lines end
/// with LF or CRLF. Empty lines are skipped, as is a byte order mark.
class CsvReader {
 public:
  /// Refers to the text. `path` is for messages.
  CsvReader(std::string_view text, std::string path);

  /// The fields of the next record, valid until the next call; false at the end of the text. Throws
  /// Error(data), naming file and line, for a quote without an end, text after a quoted field and a
  /// NUL byte.
  bool next(std::vector<std::string_view>& fields);

  std::size_t line() const { return line_; }  ///< where the latest record begins, from 1 on

 private:
  [[noreturn]] void refuse(std::string_view why) const;
  bool ends_line() const;
  void end_line();
  std::string_view field();
  std::string_view quoted();
  std::string_view plain();

  std::string_view text_;
  std::string path_;
  std::deque<std::string> unescaped_;  ///< fields of the record that had doubled quotes
  std::size_t at_ = 0;
  std::size_t line_ = 0, next_line_ = 1;
};

/// Which columns of a table are wanted.
struct CsvColumns {
  std::string target;                 ///< empty: there is none
  std::vector<std::string> features;  ///< empty: all other columns of numbers; see read_csv()
};

/// Rows of features and one target, if there is one.
class CsvTable {
 public:
  /// Throws Error as read_csv() does.
  CsvTable(std::string_view text, std::string path, const CsvColumns& columns);

  std::size_t rows() const { return lines_.size(); }
  std::size_t width() const { return names_.size(); }
  const std::vector<std::string>& features() const { return names_; }
  const std::vector<double>& values() const { return values_; }  ///< rows × width
  /// "csv: FILE: column \"y\"", for messages.
  std::string feature_name(std::size_t feature) const;
  /// Columns that are neither the target nor features though nobody has chosen the features, each
  /// with the reason: `price: "1,234.5" is not a number`.
  std::vector<std::string> unused() const;
  /// Features that are one more in each row, as numbers of rows are.
  std::vector<std::string> row_counts() const;
  const std::vector<std::string>& targets() const { return targets_; }  ///< as they are written
  /// "FILE:LINE: column 3 (y)", of the target of a row.
  std::string place_of_target(std::size_t row) const { return place(lines_[row], *target_); }
  const std::string& path() const { return path_; }

 private:
  std::string place(std::size_t line, std::size_t column) const;
  using Fields = std::vector<std::string_view>;
  void find_columns(const CsvColumns& columns, const Fields& first);
  void check_undecided(const Fields& fields);
  void add(const Fields& fields, std::size_t line);
  double feature(std::string_view field, std::size_t line, std::size_t k);
  void check_truths() const;

  std::string path_;
  std::vector<std::string> header_;
  std::vector<std::string> names_;     ///< of the features
  std::vector<std::size_t> features_;  ///< their columns
  std::optional<std::size_t> target_;  ///< its column
  /// Columns whose values are missing so far, and the first of these values.
  std::vector<std::pair<std::size_t, std::string>> undecided_;
  /// Columns of other values than numbers, and the first of these values.
  std::vector<std::pair<std::size_t, std::string>> texts_;
  /// The features with True or False, and the first line with one.
  std::map<std::size_t, std::size_t> truths_;
  std::vector<double> values_;
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
