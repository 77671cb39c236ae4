#include "data/files/csv_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fast/core/error.hpp>

#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"

namespace fast::data {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string without_doubled_quotes(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    value += text[i];
    if (text[i] == '"') ++i;
  }
  return value;
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string path)
    : text_(text), path_(std::move(path)) {
  if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
}

void CsvReader::refuse(std::string_view why) const {
  fail(ErrorKind::data, "csv: {}:{}: {}", printable(path_), next_line_, why);
}

/// At LF, CRLF or the end of the text.
bool CsvReader::ends_line() const {
  const std::string_view rest = text_.substr(at_);
  return rest.empty() || rest.starts_with('\n') || rest.starts_with("\r\n");
}

void CsvReader::end_line() {
  if (at_ < text_.size()) at_ += text_[at_] == '\r' ? 2 : 1;
  ++next_line_;
}

std::string_view CsvReader::quoted() {
  const std::size_t begun_in = next_line_, begin = ++at_;
  bool has_doubled = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') ++next_line_;
    if (c != '"') continue;
    if (text_.substr(at_ + 1).starts_with('"')) {
      has_doubled = true;
      ++at_;
      continue;
    }
    const std::string_view value = text_.substr(begin, at_++ - begin);
    if (!ends_line() && text_[at_] != ',')
      refuse(begun_in == next_line_
                 ? "text after a quoted field; a comma must follow"
                 : fmt::format("text after the quoted field that begins in line {}; a comma must "
                               "follow, or the quote of that line has no end",
                               begun_in));
    return has_doubled ? unescaped_.emplace_back(without_doubled_quotes(value)) : value;
  }
  next_line_ = begun_in;
  refuse("a quote without an end; add the closing quote, or double quotes within a field");
}

std::string_view CsvReader::plain() {
  const std::size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == ',' || c == '\n') break;
    if (c == '\0') refuse("a NUL byte; the file is not text (UTF-8)");
    if (c != '\r') continue;
    if (ends_line()) break;
    refuse("a carriage return alone; lines must end with LF or CRLF");
  }
  return text_.substr(begin, at_ - begin);
}

std::string_view CsvReader::field() {
  return at_ < text_.size() && text_[at_] == '"' ? quoted() : plain();
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unescaped_.clear();
  while (at_ < text_.size() && ends_line()) end_line();
  if (at_ >= text_.size()) return false;
  line_ = next_line_;
  fields.push_back(field());
  while (!ends_line()) {
    ++at_;
    fields.push_back(field());
  }
  end_line();
  return true;
}

namespace {

constexpr std::size_t longest_shown = 40, most_names_shown = 12;
constexpr std::array<std::string_view, 18> missing_values{
    "",     "na",    "n/a",     "null",    "none",   "?",      ".",     "-",     "<na>",
    "#n/a", "#n/a!", "#div/0!", "#value!", "#name?", "#null!", "#num!", "#ref!", "#na"};

/// A field in a message.
std::string shown(std::string_view field) {
  if (field.size() <= longest_shown) return printable(field);
  return printable(field.substr(0, longest_shown)) + "...";
}

/// ": a, b, c".
std::string listed(const std::vector<std::string>& header) {
  std::string text;
  for (std::size_t c = 0; c < std::min(header.size(), most_names_shown); ++c)
    text += (c == 0 ? ": " : ", ") + shown(header[c]);
  return header.size() > most_names_shown ? text + ", ..." : text;
}

/// False for a column without a name, and for the names that pandas makes of them.
bool has_name(std::string_view column) {
  return !column.empty() && !column.starts_with("Unnamed: ");
}

/// What is not CSV, or has a line before the names.
void refuse_other_texts(std::string_view text, const std::string& path) {
  const std::string_view begin = text.substr(0, 2);
  require(begin != "\xff\xfe" && begin != "\xfe\xff", ErrorKind::data,
          "csv: {}: the text is UTF-16; save it as UTF-8", printable(path));
  require(!text.starts_with("sep="), ErrorKind::data,
          "csv: {}:1: \"sep=\" is a line of Excel; the names of the columns are required there. "
          "Remove the line",
          printable(path));
}

/// A separator of other programs.
void refuse_other_separators(const std::vector<std::string>& header, const std::string& path) {
  if (header.size() != 1) return;
  const bool has_semicolons = header[0].find(';') != std::string::npos;
  require(!has_semicolons && header[0].find('\t') == std::string::npos, ErrorKind::data,
          "csv: {}:1: {} separate the names of the columns; commas are required, with points in "
          "numbers",
          printable(path), has_semicolons ? "semicolons" : "tabs");
}

std::string_view trimmed(std::string_view field) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!field.empty() && is_space(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  return field;
}

std::size_t column_of(const std::vector<std::string>& header, const std::string& name,
                      const std::string& path) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) {
    const std::vector<std::string_view> names(header.begin(), header.end());
    const std::string close = did_you_mean(name, names);
    fail(ErrorKind::argument, "csv: {}:1: there is no column \"{}\" among its {}{}",
         printable(path), printable(name), header.size(),
         close.empty() ? listed(header) : printable(close));
  }
  require(std::find(found + 1, header.end(), name) == header.end(), ErrorKind::data,
          "csv: {}:1: two columns are called \"{}\"; give them different names", printable(path),
          printable(name));
  return static_cast<std::size_t>(found - header.begin());
}

}  // namespace

bool is_missing(std::string_view field) {
  const std::string small = in_small_letters(trimmed(field));
  return std::find(missing_values.begin(), missing_values.end(), small) != missing_values.end();
}

bool read_number(std::string_view field, double& value) {
  field = trimmed(field);
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char* const last = field.data() + field.size();
  const auto [end, error] = std::from_chars(field.data(), last, value);
  if (end != last || field.empty()) return false;
  if (error == std::errc::result_out_of_range) value = HUGE_VAL;
  return error == std::errc() || error == std::errc::result_out_of_range;
}

bool read_feature(std::string_view field, double& value) {
  if (read_number(field, value)) return true;
  const std::string small = in_small_letters(trimmed(field));
  if (small != "true" && small != "false") return false;
  value = small == "true" ? 1 : 0;
  return true;
}

CsvTable::CsvTable(std::string_view text, std::string path, const CsvColumns& columns)
    : path_(std::move(path)) {
  refuse_other_texts(text, path_);
  CsvReader reader(text, path_);
  Fields fields;
  require(reader.next(fields), ErrorKind::data,
          "csv: {}: the file is empty; a first line with the names of the columns is required",
          printable(path_));
  header_.assign(fields.begin(), fields.end());
  refuse_other_separators(header_, path_);
  while (reader.next(fields)) {
    if (fields.size() != header_.size())
      fail(ErrorKind::data,
           "csv: {}:{}: {} fields, the first line names {} columns; every line must have as many",
           printable(path_), reader.line(), fields.size(), header_.size());
    if (lines_.empty()) find_columns(columns, fields);
    if (!undecided_.empty()) check_undecided(fields);
    add(fields, reader.line());
  }
  require(!lines_.empty(), ErrorKind::data, "csv: {}: no rows follow the line of names",
          printable(path_));
  check_truths();
}

void CsvTable::find_columns(const CsvColumns& columns, const Fields& first) {
  if (!columns.target.empty()) target_ = column_of(header_, columns.target, path_);
  for (const std::string& name : columns.features) {
    features_.push_back(column_of(header_, name, path_));
    require(features_.back() != target_, ErrorKind::argument,
            "csv: {}: column \"{}\" is the target and a feature; choose one", printable(path_),
            printable(name));
  }
  for (std::size_t c = 0; columns.features.empty() && c < header_.size(); ++c) {
    double number = 0;
    if (c == target_) continue;
    if (is_missing(first[c]))
      undecided_.emplace_back(c, first[c]);
    else if (has_name(header_[c]) && read_feature(first[c], number))
      features_.push_back(c);
    else
      texts_.emplace_back(c, first[c]);
  }
  require(!features_.empty(), ErrorKind::data,
          "csv: {}: no {}column{} has numbers in its first row; features must be numbers",
          printable(path_), target_ ? "other " : "",
          target_ ? fmt::format(" than \"{}\"", printable(columns.target)) : "");
  for (const std::size_t c : features_) names_.push_back(header_[c]);
}

/// A column of numbers whose first value is missing would else be left out without a message.
void CsvTable::check_undecided(const Fields& fields) {
  std::erase_if(undecided_, [&](const auto& column) {
    const auto& [c, first] = column;
    double number = 0;
    if (is_missing(fields[c])) return false;
    require(!has_name(header_[c]) || !read_feature(fields[c], number), ErrorKind::data,
            "csv: {}: \"{}\" is not a number, later values of the column are; correct it, or name "
            "the --features without this column",
            place(lines_.front(), c), shown(first));
    texts_.emplace_back(c, fields[c]);
    return true;
  });
}

std::vector<std::string> CsvTable::unused() const {
  const auto column = [this](std::size_t c) {
    return header_[c].empty() ? fmt::format("column {}", c + 1) : shown(header_[c]);
  };
  std::vector<std::string> columns;
  for (const auto& [c, text] : texts_)
    columns.push_back(has_name(header_[c])
                          ? fmt::format("{}: \"{}\" is not a number", column(c), shown(text))
                          : fmt::format("{}: it has no name", column(c)));
  for (const auto& [c, text] : undecided_)
    columns.push_back(fmt::format("{}: all values are missing", column(c)));
  return columns;
}

std::vector<std::string> CsvTable::row_counts() const {
  std::vector<std::string> columns;
  for (std::size_t k = 0; k < width(); ++k) {
    std::size_t row = 0;
    while (row < rows() && values_[row * width() + k] == values_[k] + static_cast<double>(row))
      ++row;
    if (row == rows() && rows() > 2) columns.push_back(shown(names_[k]));
  }
  return columns;
}

/// True and False are 1 and 0. Among other numbers they are a mistake of the file.
void CsvTable::check_truths() const {
  for (const auto& [k, line] : truths_) {
    for (std::size_t row = 0; row < rows(); ++row) {
      const double value = values_[row * width() + k];
      if (value != 0 && value != 1)
        fail(ErrorKind::data,
             "csv: {}: a value is True or False, line {} has {}; correct it, or name the "
             "--features without this column",
             place(line, features_[k]), lines_[row], value);
    }
  }
}

std::string CsvTable::place(std::size_t line, std::size_t column) const {
  return fmt::format("{}:{}: column {} ({})", printable(path_), line, column + 1,
                     printable(header_[column]));
}

double CsvTable::feature(std::string_view field, std::size_t line, std::size_t k) {
  double number = 0;
  if (read_number(field, number)) {
    if (!std::isfinite(static_cast<float>(number)))
      fail(ErrorKind::data,
           "csv: {}: \"{}\" is not a finite number; correct the value or remove the row",
           place(line, features_[k]), shown(field));
    return number;
  }
  if (!read_feature(field, number))
    fail(ErrorKind::data,
         "csv: {}: \"{}\" is not a number; correct it, or name the --features without this column",
         place(line, features_[k]), shown(field));
  truths_.emplace(k, line);
  return number;
}

std::string CsvTable::feature_name(std::size_t feature) const {
  return fmt::format("csv: {}: column \"{}\"", printable(path_), shown(names_[feature]));
}

void CsvTable::add(const Fields& fields, std::size_t line) {
  for (std::size_t k = 0; k < features_.size(); ++k)
    values_.push_back(feature(fields[features_[k]], line, k));
  if (target_) targets_.emplace_back(trimmed(fields[*target_]));
  lines_.push_back(line);
}

}  // namespace fast::data
