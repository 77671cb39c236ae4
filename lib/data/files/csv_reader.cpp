#include "data/files/csv_reader.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <utility>

namespace fast::data {
namespace {
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
}

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

std::string CsvReader::quoted() {
  const std::size_t begun_in = next_line_;
  std::string value;
  for (++at_; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"' && !text_.substr(at_ + 1).starts_with('"')) {
      ++at_;
      if (!ends_line() && text_[at_] != ',')
        refuse(begun_in == next_line_
                   ? "text after a quoted field; a comma must follow"
                   : fmt::format("text after the quoted field that begins in line {}; a comma must "
                                 "follow, or the quote of that line has no end",
                                 begun_in));
      return value;
    }
    if (c == '"') ++at_;
    if (c == '\n') ++next_line_;
    value += c;
  }
  next_line_ = begun_in;
  refuse("a quote without an end; add the closing quote, or double quotes within a field");
}

std::string CsvReader::plain() {
  const std::size_t begin = at_;
  while (!ends_line() && text_[at_] != ',') {
    if (text_[at_] == '\0') refuse("a NUL byte; the file is not text (UTF-8)");
    if (text_[at_] == '\r') refuse("a carriage return alone; lines must end with LF or CRLF");
    ++at_;
  }
  return std::string(text_.substr(begin, at_ - begin));
}

std::string CsvReader::field() {
  return at_ < text_.size() && text_[at_] == '"' ? quoted() : plain();
}

bool CsvReader::next(std::vector<std::string>& fields) {
  fields.clear();
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
