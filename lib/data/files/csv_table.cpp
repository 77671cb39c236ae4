#include "data/files/csv_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fast/core/error.hpp>
#include <limits>
#include <set>

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

const char* name_of(char separator) {
  return separator == ',' ? "comma" : separator == ';' ? "semicolon" : "tab";
}

}  // namespace

char separator_of(std::string_view text) {
  std::size_t commas = 0, semicolons = 0, tabs = 0;
  bool is_quoted = false;
  for (const char c : text.substr(0, text.find_first_of("\r\n"))) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    commas += c == ',' ? 1 : 0;
    semicolons += c == ';' ? 1 : 0;
    tabs += c == '\t' ? 1 : 0;
  }
  if (tabs > std::max(commas, semicolons)) return '\t';
  return semicolons > commas ? ';' : ',';
}

CsvReader::CsvReader(std::string_view text, std::string path, char separator)
    : text_(text), path_(std::move(path)), separator_(separator) {
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
    if (!ends_line() && text_[at_] != separator_)
      refuse(begun_in == next_line_
                 ? fmt::format("text after a quoted field; a {} must follow", name_of(separator_))
                 : fmt::format("text after the quoted field that begins in line {}; a {} must "
                               "follow, or the quote of that line has no end",
                               begun_in, name_of(separator_)));
    return has_doubled ? unescaped_.emplace_back(without_doubled_quotes(value)) : value;
  }
  next_line_ = begun_in;
  refuse("a quote without an end; add the closing quote, or double quotes within a field");
}

std::string_view CsvReader::plain() {
  const std::size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == separator_ || c == '\n') break;
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
/// Of a column that nobody has named, and of one in --categories or --features.
constexpr std::size_t most_found_categories = 100, most_categories = 4096;
constexpr std::array<std::string_view, 19> missing_values{
    "",     "na",    "n/a",     "null",    "none",   "?",      ".",     "-",     "<na>", "nan",
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

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string_view trimmed(std::string_view field) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!field.empty() && is_space(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  return field;
}

bool is_missing(std::string_view field) {
  constexpr std::size_t longest = 7;
  field = trimmed(field);
  if (field.size() > longest) return false;
  if (!field.empty() && field.back() >= '0' && field.back() <= '9') return false;  // most numbers
  const std::string small = in_small_letters(field);
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
  const bool is_true = small == "true" || small == "yes";
  if (!is_true && small != "false" && small != "no") return false;
  value = is_true ? 1 : 0;
  return true;
}

CsvTable::CsvTable(std::string_view text, std::string path, const CsvColumns& columns)
    : path_(std::move(path)), separator_(separator_of(text)), are_encoded_(columns.are_encoded) {
  refuse_other_texts(text, path_);
  CsvReader reader(text, path_, separator_);
  Fields fields;
  require(reader.next(fields), ErrorKind::data,
          "csv: {}: the file is empty; a first line with the names of the columns is required",
          printable(path_));
  header_.assign(fields.begin(), fields.end());
  require(next(reader, fields), ErrorKind::data, "csv: {}: no rows follow the line of names",
          printable(path_));
  if (!columns.target.empty()) target_ = column_of(header_, columns.target, path_);
  if (are_encoded_) {
    find_columns(columns);
  } else {
    const std::vector<std::size_t> wanted = candidates(columns);
    const std::vector<Contents> contents = look_at(text, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) take(wanted[i], contents[i], columns);
  }
  require(!features_.empty(), ErrorKind::data,
          "csv: {}: no {}column{} has numbers or categories; features must be one of these",
          printable(path_), target_ ? "other " : "",
          target_ ? fmt::format(" than \"{}\"", printable(columns.target)) : "");
  for (const FeatureCode& code : features_) column_of(header_, header_[code.column], path_);
  std::set<std::string_view> seen;
  for (const std::string& name : names_)
    require(seen.insert(name).second, ErrorKind::data,
            "csv: {}:1: two columns are called \"{}\"; give them different names", printable(path_),
            printable(name));
  do add(fields, reader.line());
  while (next(reader, fields));
  check_points();
  check_truths();
}

bool CsvTable::next(CsvReader& reader, Fields& fields) const {
  if (!reader.next(fields)) return false;
  if (fields.size() != header_.size())
    fail(ErrorKind::data,
         "csv: {}:{}: {} fields, the first line names {} columns; every line must have as many",
         printable(path_), reader.line(), fields.size(), header_.size());
  return true;
}

/// By the names of features of another table.
void CsvTable::find_columns(const CsvColumns& columns) {
  for (const std::string& name : columns.features) {
    const std::optional<FeatureCode> code = code_of(name, header_);
    const std::string column = code ? header_[code->column] : column_in(name);
    require(column_of(header_, column, path_) != target_, ErrorKind::argument,
            "csv: {}: column \"{}\" is the target and a feature; choose one", printable(path_),
            printable(column));
    add_feature(*code, name);
  }
}

/// The columns that features may come from, in their order.
std::vector<std::size_t> CsvTable::candidates(const CsvColumns& columns) {
  for (const std::string& name : columns.categories) {
    require(column_of(header_, name, path_) != target_, ErrorKind::argument,
            "csv: {}: column \"{}\" is the target, and in --categories; leave it out there",
            printable(path_), printable(name));
    require(columns.features.empty() || contains(columns.features, name), ErrorKind::argument,
            "csv: {}: column \"{}\" is in --categories, and not in --features; add it there",
            printable(path_), printable(name));
  }
  std::vector<std::size_t> wanted;
  for (const std::string& name : columns.features) {
    wanted.push_back(column_of(header_, name, path_));
    require(wanted.back() != target_, ErrorKind::argument,
            "csv: {}: column \"{}\" is the target and a feature; choose one", printable(path_),
            printable(name));
  }
  for (std::size_t c = 0; columns.features.empty() && c < header_.size(); ++c) {
    if (c == target_) continue;
    if (has_name(header_[c]) || contains(columns.categories, header_[c]))
      wanted.push_back(c);
    else
      unused_.push_back(fmt::format("{}: it has no name", header_[c].empty()
                                                              ? fmt::format("column {}", c + 1)
                                                              : shown(header_[c])));
  }
  return wanted;
}

std::vector<CsvTable::Contents> CsvTable::look_at(std::string_view text,
                                                  const std::vector<std::size_t>& columns) {
  std::vector<Contents> contents(columns.size());
  CsvReader reader(text, path_, separator_);
  Fields fields;
  next(reader, fields);  // the names
  while (next(reader, fields)) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      Contents& column = contents[i];
      const std::string_view field = trimmed(with_point(fields[columns[i]], 0));
      double number = 0;
      if (is_missing(field)) {
        ++column.missing;
        continue;
      }
      if (column.values.size() <= most_categories && !column.values.contains(field))
        column.values.emplace(field);
      if (read_number(field, number)) {
        ++column.numbers;
      } else if (read_feature(field, number)) {
        ++column.truths;
      } else if (++column.texts == 1) {
        column.first_line = reader.line();
        column.first_text = field;
      }
    }
  }
  return contents;
}

/// Why a column of texts that nobody has named is no feature; empty: it is one.
std::string CsvTable::why_not(const Contents& contents,
                              const std::set<std::string>& categories) const {
  const std::string text = shown(contents.first_text);
  if (categories.size() == contents.known() && contents.known() > 2)
    return fmt::format("each row has another text, as \"{}\"", text);
  if (categories.size() > most_found_categories)
    return fmt::format("more than {} different texts, as \"{}\"; --categories takes it",
                       most_found_categories, text);
  if (categories.size() == 1 && contents.missing == 0)
    return fmt::format("all rows have \"{}\"", text);
  return {};
}

/// Adds the features of a column.
void CsvTable::take(std::size_t column, const Contents& contents, const CsvColumns& columns) {
  using Kind = FeatureCode::Kind;
  const std::string& name = header_[column];
  const bool is_chosen = contains(columns.categories, name);
  const bool is_named = is_chosen || !columns.features.empty();
  if (contents.known() == 0) {
    require(!is_named, ErrorKind::data,
            "csv: {}: column \"{}\": all values are missing; leave it out", printable(path_),
            printable(name));
    unused_.push_back(fmt::format("{}: all values are missing", shown(name)));
    return;
  }
  if (contents.texts > 0 && !is_chosen && contents.numbers >= contents.texts + contents.truths)
    fail(ErrorKind::data,
         "csv: {}: \"{}\" is not a number; correct it, or name the --features without this column, "
         "or the column in --categories",
         place(contents.first_line, column), shown(contents.first_text));
  if (contents.texts > 0 || is_chosen) {
    std::set<std::string> categories;
    for (const std::string& value : contents.values) categories.insert(category_in(value));
    if (const std::string why = is_named ? "" : why_not(contents, categories); !why.empty()) {
      unused_.push_back(fmt::format("{}: {}", shown(name), why));
      return;
    }
    require(categories.size() <= most_categories, ErrorKind::data,
            "csv: {}: column \"{}\" has more than {} categories; join rare ones, or leave it out",
            printable(path_), printable(name), most_categories);
    for (const std::string& category : categories)
      add_feature({column, Kind::category, category}, category_feature(name, category));
  } else {
    add_feature({column, Kind::number}, name);
  }
  if (contents.missing > 0) add_feature({column, Kind::missing}, missing_feature(name));
}

void CsvTable::add_feature(FeatureCode code, std::string name) {
  require(code.kind == FeatureCode::Kind::number || !contains(header_, name), ErrorKind::data,
          "csv: {}: a column is called \"{}\", as is a feature of column \"{}\"; rename one",
          printable(path_), printable(name), printable(header_[code.column]));
  if (code.kind == FeatureCode::Kind::category) ++categories_[code.column];
  if (code.kind == FeatureCode::Kind::missing) flagged_.insert(code.column);
  is_known_.emplace(code.column, false);
  features_.push_back(std::move(code));
  names_.push_back(std::move(name));
}

namespace {

/// "color (3), city (12)"
std::string counted(const std::map<std::size_t, std::size_t>& columns,
                    const std::vector<std::string>& header) {
  std::string text;
  for (const auto& [column, count] : columns)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", shown(header[column]), count);
  return text;
}

}  // namespace

std::vector<std::string> CsvTable::notes() const {
  std::vector<std::string> notes;
  if (points_[0] > 0) notes.emplace_back("numbers with decimal commas are read, as 1,5");
  std::map<std::size_t, std::size_t> flagged, without_flag;
  for (const auto& [column, count] : missing_)
    (flagged_.contains(column) ? flagged : without_flag)[column] = count;
  if (!are_encoded_ && !categories_.empty())
    notes.push_back("categories, each one feature of 0 and 1: " + counted(categories_, header_));
  if (!flagged.empty())
    notes.push_back("missing values: " + counted(flagged, header_) +
                    "; the column's mean stands for a number, and one more feature marks them");
  if (!without_flag.empty())
    notes.push_back(
        "missing values, of which training had none: " + counted(without_flag, header_) +
        "; the column's mean in training stands for a number");
  for (const auto& [column, unknown] : unknown_)
    notes.push_back(fmt::format(
        "column {}: rows with a category that training had not, as \"{}\": {}; it counts as none",
        shown(header_[column]), shown(unknown.first), unknown.rows));
  if (are_encoded_) return notes;  // the model has decided what it uses
  for (const std::string& column : unused_) notes.push_back("column not used: " + column);
  for (const std::string& column : row_counts())
    notes.push_back(fmt::format(
        "column {}: it counts the rows; unless it is a feature, name the --features without it",
        column));
  return notes;
}

/// Features that are one more in each row, as numbers of rows are.
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
      if (value != 0 && value != 1 && !std::isnan(value))
        fail(ErrorKind::data,
             "csv: {}: a value is True or False, line {} has {}; correct it, or name the "
             "--features without this column",
             place(line, features_[k].column), lines_[row], value);
    }
  }
}

std::string_view CsvTable::with_point(std::string_view field, std::size_t line) {
  double number = 0;
  const std::size_t comma = field.find(',');
  if (separator_ == ',') return field;
  if (comma == std::string_view::npos) {
    if (points_[1] == 0 && field.find('.') != std::string_view::npos && read_number(field, number))
      points_[1] = line;
    return field;
  }
  room_ = field;
  room_[comma] = '.';
  if (!read_number(room_, number)) return field;
  if (points_[0] == 0) points_[0] = line;
  return room_;
}

/// A file has one of the two. The other one may separate thousands.
void CsvTable::check_points() const {
  if (points_[0] > 0 && points_[1] > 0)
    fail(ErrorKind::data,
         "csv: {}: line {} has a decimal comma, line {} a decimal point; write all numbers in one "
         "way, without separators of thousands",
         printable(path_), points_[0], points_[1]);
}

std::string CsvTable::place(std::size_t line, std::size_t column) const {
  return fmt::format("{}:{}: column {} ({})", printable(path_), line, column + 1,
                     printable(header_[column]));
}

double CsvTable::feature(std::string_view field, std::size_t line, std::size_t k) {
  const std::size_t column = features_[k].column;
  double number = 0;
  if (read_number(field, number)) {
    if (!std::isfinite(static_cast<float>(number)))
      fail(ErrorKind::data,
           "csv: {}: \"{}\" is not a finite number; correct the value or remove the row",
           place(line, column), shown(field));
    return number;
  }
  if (!read_feature(field, number))
    fail(ErrorKind::data,
         "csv: {}: \"{}\" is not a number; correct it, or name the --features without this column",
         place(line, column), shown(field));
  truths_.emplace(k, line);
  return number;
}

std::string CsvTable::feature_name(std::size_t feature) const {
  return fmt::format("csv: {}: column \"{}\"", printable(path_), shown(names_[feature]));
}

void CsvTable::add(const Fields& fields, std::size_t line) {
  using Kind = FeatureCode::Kind;
  std::optional<std::size_t> latest;  // the column of the following
  std::string_view field;
  std::string category;
  bool is_gone = false;
  for (std::size_t k = 0; k < features_.size(); ++k) {
    const FeatureCode& code = features_[k];
    if (latest != code.column) {
      latest = code.column;
      field = with_point(fields[code.column], line);
      is_gone = is_missing(field);
      category = categories_.contains(code.column) ? category_in(field) : "";
    }
    double value = is_gone ? 1 : 0;  // Kind::missing
    if (code.kind == Kind::number) {
      value = is_gone ? std::numeric_limits<double>::quiet_NaN() : feature(field, line, k);
    } else if (code.kind == Kind::category) {
      value = !is_gone && category == code.category ? 1 : 0;
      if (value == 1) is_known_[code.column] = true;
    }
    values_.push_back(value);
  }
  count_missing(fields);
  if (target_) targets_.emplace_back(trimmed(with_point(fields[*target_], line)));
  lines_.push_back(line);
}

/// Counts what a row lacks, and its categories that no feature has.
void CsvTable::count_missing(const Fields& fields) {
  for (auto& [column, is_known] : is_known_) {
    if (is_missing(fields[column])) {
      ++missing_[column];
    } else if (!is_known && categories_.contains(column)) {
      Unknown& unknown = unknown_[column];
      if (++unknown.rows == 1) unknown.first = trimmed(fields[column]);
    }
    is_known = false;
  }
}

}  // namespace fast::data
