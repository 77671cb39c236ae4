#include "nn/cuda/tuning_file.hpp"

#include <cstdlib>
#include <fast/core/error.hpp>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "core/message.hpp"
#include "core/text.hpp"
#include "core/whole_file.hpp"

namespace fast::cuda {
namespace {

constexpr std::string_view form = "FAST tuning ", version = "1: ";

std::filesystem::path path_in(const char* variable) {
  const char* value = std::getenv(variable);
  const std::filesystem::path path(value == nullptr ? "" : value);
  return path.is_absolute() ? path : std::filesystem::path();
}

/// "NVIDIA H200 (9.0), cuDNN 91900" becomes "tuning-NVIDIA-H200-9-0-cuDNN-91900.txt".
std::string file_name(std::string_view card) {
  std::string name = "tuning-";
  for (const char c : card) {
    const char small = in_small_letters(c);
    if ((small >= 'a' && small <= 'z') || (c >= '0' && c <= '9'))
      name += c;
    else if (name.back() != '-')
      name += '-';
  }
  return name + ".txt";
}

/// The lines between the heading and the last line, which has their number. Nothing if the file
/// belongs to another card, or is of another version. No value if it is damaged.
std::optional<std::map<std::string, std::string>> parse(std::string_view text,
                                                        std::string_view heading) {
  std::map<std::string, std::string> ways;
  if (!text.starts_with(form)) return std::nullopt;
  const std::vector<std::string_view> lines = split_text(text, '\n');
  if (lines.front() != heading) return ways;
  if (lines.size() < 3 || !lines.back().empty()) return std::nullopt;
  const std::size_t count = lines.size() - 3;
  if (lines[count + 1] != fmt::format("end {}", count)) return std::nullopt;
  for (std::size_t i = 1; i <= count; ++i) {
    const std::vector<std::string_view> names = split_text(lines[i], '\t');
    if (names.size() != 2 || names[0].empty() || names[1].empty()) return std::nullopt;
    ways.emplace(names[0], names[1]);
  }
  return ways;
}

}  // namespace

std::filesystem::path cache_folder() {
  if (const auto folder = path_in("XDG_CACHE_HOME"); !folder.empty()) return folder / "fast";
  if (const auto home = path_in("HOME"); !home.empty()) return home / ".cache" / "fast";
  return {};
}

TuningFile::TuningFile(const std::filesystem::path& folder, const std::string& card, LogSink log)
    : heading_(fmt::format("{}{}{}", form, version, printable(card))), log_(std::move(log)) {
  if (folder.empty()) return;
  path_ = folder / file_name(card);
  ways_ = read(true);
}

const std::string* TuningFile::find(const std::string& work) const {
  const auto found = ways_.find(work);
  return found == ways_.end() ? nullptr : &found->second;
}

void TuningFile::add(const std::string& work, const std::string& way) {
  ways_.insert_or_assign(work, way);
  added_.insert_or_assign(work, way);
}

void TuningFile::save() {
  if (added_.empty() || !writes_) return;
  try {
    Names all = read(false);
    for (const auto& [work, way] : added_) all.insert_or_assign(work, way);
    write(all);
  } catch (const std::exception& error) {
    writes_ = false;
    tell(fmt::format("results are not kept: {}", message_of(error)));
  }
  added_.clear();
}

TuningFile::Names TuningFile::read(bool tell_of_damage) const {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path_, ignored)) return {};
  std::ifstream file(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::optional<Names> ways = parse(text, heading_);
  if (!ways && tell_of_damage)
    tell(fmt::format("{} is damaged; it is ignored and written anew", printable(path_.string())));
  return ways.value_or(Names{});
}

void TuningFile::write(const Names& ways) const {
  require(!path_.empty(), ErrorKind::resource,
          "neither XDG_CACHE_HOME nor HOME is an absolute path; set one of them");
  std::filesystem::create_directories(path_.parent_path());
  std::string text = heading_ + '\n';
  for (const auto& [work, way] : ways) text += fmt::format("{}\t{}\n", work, way);
  write_whole(path_, text + fmt::format("end {}\n", ways.size()));
}

void TuningFile::tell(const std::string& text) const {
  if (log_) log_(LogLevel::info, "cuda: autotune: " + text);
}

}  // namespace fast::cuda
