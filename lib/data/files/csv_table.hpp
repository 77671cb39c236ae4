// The chosen columns of a CSV text, as numbers and texts.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/table_encoding.hpp"

namespace fast::data {

// Records of a text of separated values (RFC 4180).

/// Fields may be quoted; a quoted field may hold separators, line ends and doubled quotes. Lines
/// end with LF or CRLF. Empty lines are skipped, as is a byte order mark.
class CsvReader {
 public:
  /// Refers to the text. `path` is for messages.
  CsvReader(std::string_view text, std::string path, char separator = ',');

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
  char separator_;
  std::deque<std::string> unescaped_;  ///< fields of the record that had doubled quotes
  std::size_t at_ = 0;
  std::size_t line_ = 0, next_line_ = 1;
};

/// The comma, semicolon or tab that the first line has most of, outside of quotes.
char separator_of(std::string_view text);

/// Which columns of a table are wanted.
struct CsvColumns {
  std::string target;                 ///< empty: there is none
  std::vector<std::string> features;  ///< empty: all other columns that can be; see read_csv()
  std::vector<std::string> categories = {};  ///< among them, those that are categories
  /// `features` are those of another table, as CsvTable::features() names them.
  bool are_encoded = false;
};

/// Rows of features and one target, if there is one.
class CsvTable {
 public:
  /// Throws Error as read_csv() does.
  CsvTable(std::string_view text, std::string path, const CsvColumns& columns);

  std::size_t rows() const { return lines_.size(); }
  std::size_t width() const { return names_.size(); }
  const std::vector<std::string>& features() const { return names_; }
  /// rows × width. A missing number is NaN.
  const std::vector<double>& values() const { return values_; }
  /// "csv: FILE: column \"y\"", for messages.
  std::string feature_name(std::size_t feature) const;
  /// What was done with columns, and which were left out: one sentence each, for people.
  std::vector<std::string> notes() const;
  const std::vector<std::string>& targets() const { return targets_; }  ///< as they are written
  /// "FILE:LINE: column 3 (y)", of the target of a row.
  std::string place_of_target(std::size_t row) const { return place(lines_[row], *target_); }
  const std::string& path() const { return path_; }

 private:
  using Fields = std::vector<std::string_view>;
  /// What the fields of a column are.
  struct Contents {
    std::size_t numbers = 0, truths = 0, texts = 0, missing = 0;
    std::size_t first_line = 0;   ///< of the texts
    std::string first_text = {};  ///< likewise
    std::set<std::string, std::less<>> values =
        {};  ///< as they are written; at most `most_categories` + 1

    std::size_t known() const { return numbers + truths + texts; }
  };
  std::string place(std::size_t line, std::size_t column) const;
  bool next(CsvReader& reader, Fields& fields) const;
  void find_columns(const CsvColumns& columns);
  std::vector<std::size_t> candidates(const CsvColumns& columns);
  std::vector<Contents> look_at(std::string_view text, const std::vector<std::size_t>& columns);
  void take(std::size_t column, const Contents& contents, const CsvColumns& columns);
  std::string why_not(const Contents& contents, const std::set<std::string>& categories) const;
  void add_feature(FeatureCode code, std::string name);
  void add(const Fields& fields, std::size_t line);
  void count_missing(const Fields& fields);
  double feature(std::string_view field, std::size_t line, std::size_t k);
  /// With a point for a decimal comma. The text may lie in `room_`.
  std::string_view with_point(std::string_view field, std::size_t line);
  void check_points() const;
  void check_truths() const;
  std::vector<std::string> row_counts() const;

  std::string path_;
  char separator_;
  bool are_encoded_;
  std::vector<std::string> header_;
  std::vector<std::string> names_;     ///< of the features
  std::vector<FeatureCode> features_;  ///< what they are
  std::optional<std::size_t> target_;  ///< its column
  std::vector<std::string> unused_;    ///< columns, each with the reason
  /// By columns: how many categories they have, and how many values are missing.
  std::map<std::size_t, std::size_t> categories_, missing_;
  std::set<std::size_t> flagged_;  ///< columns with a feature that tells what is missing
  /// The columns of features. A category of the latest row is one of them.
  std::map<std::size_t, bool> is_known_;
  struct Unknown {
    std::size_t rows = 0;
    std::string first = {};
  };
  std::map<std::size_t, Unknown> unknown_;  ///< fields of categories that are not features
  std::array<std::size_t, 2> points_{};     ///< first line with a decimal comma, with a point
  std::string room_;
  /// The features with True or False, and the first line with one.
  std::map<std::size_t, std::size_t> truths_;
  std::vector<double> values_;
  std::vector<std::string> targets_;
  std::vector<std::size_t> lines_;  ///< of each row
};

/// Without the spaces and tabs around it.
std::string_view trimmed(std::string_view field);

/// True for a field that stands for a value that is not known: an empty one, NA, NaN, N/A, <NA>,
/// null, None, ?, ., -, and the errors of spreadsheets, as #N/A and #DIV/0!.
bool is_missing(std::string_view field);

/// Reads the number of a field, without the spaces around it; false when it is no number. "nan" and
/// "inf" are numbers.
bool read_number(std::string_view field, double& value);

/// Reads a field of a feature: a number, or true and yes as 1, false and no as 0.
bool read_feature(std::string_view field, double& value);

}  // namespace fast::data
