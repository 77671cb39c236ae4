// Records of a text of comma-separated values (RFC 4180).
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

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

}  // namespace fast::data
