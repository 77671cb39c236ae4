#include "data/files/csv_reader.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <utility>

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

}  // namespace fast::data
