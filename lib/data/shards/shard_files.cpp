#include <fast/data/shards.hpp>

#include <glob.h>

#include <cstdint>
#include <fast/core/error.hpp>
#include <set>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast::data {
namespace {

constexpr std::size_t most_files = 1'000'000;

/// "000..011" or "a,b": the texts that it stands for.
std::vector<std::string> expand_braces(std::string_view inside, const std::string& pattern) {
  std::vector<std::string> texts;
  const std::size_t dots = inside.find("..");
  if (dots != std::string_view::npos) {
    const std::string_view first = inside.substr(0, dots), last = inside.substr(dots + 2);
    std::uint64_t from = 0, to = 0;
    require(reads(first, from) && reads(last, to) && from <= to && to - from < most_files,
            ErrorKind::argument,
            "shards: \"{}\": {{{}}} is not a range; two numbers are required, as in {{000..011}}",
            printable(pattern), printable(inside));
    for (std::uint64_t i = 0; i <= to - from; ++i)
      texts.push_back(fmt::format("{:0{}}", from + i, first.size()));
    return texts;
  }
  for (const std::string_view text : split_text(inside, ',')) texts.emplace_back(text);
  return texts;
}

/// The first pair of braces, then the rest.
std::vector<std::string> expand(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  require(close != std::string::npos, ErrorKind::argument,
          "shards: \"{}\": a brace without an end; close it, as in {{000..011}}",
          printable(pattern));
  std::vector<std::string> all;
  const std::string inside = pattern.substr(open + 1, close - open - 1);
  const std::vector<std::string> rests = expand(pattern.substr(close + 1));
  for (const std::string& each : expand_braces(inside, pattern)) {
    for (const std::string& rest : rests) {
      all.push_back(pattern.substr(0, open) + each + rest);
      require(all.size() <= most_files, ErrorKind::argument,
              "shards: \"{}\" names more than {} files; take fewer, larger shards",
              printable(pattern), most_files);
    }
  }
  return all;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const int status = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  require(status == 0, ErrorKind::data, "shards: no file matches \"{}\"; correct the pattern",
          printable(pattern));
  return files;
}

}  // namespace

bool is_pattern(std::string_view path) {
  return path.find_first_of("{*?[") != std::string_view::npos;
}

std::vector<std::filesystem::path> shard_files(const std::string& pattern) {
  // A file may have brackets in its name.
  if (std::error_code error; std::filesystem::exists(pattern, error)) return {pattern};
  std::vector<std::filesystem::path> files;
  std::set<std::string> seen;
  for (const std::string& each : expand(pattern)) {
    const bool is_glob = each.find_first_of("*?[") != std::string::npos;
    for (const std::string& file : is_glob ? matches(each) : std::vector<std::string>{each}) {
      const std::string problem = why_unreadable_file(file);
      require(problem.empty(), ErrorKind::data, "shards: {}: {}; correct the name or the pattern",
              printable(file), problem);
      if (seen.insert(file).second) files.emplace_back(file);
    }
  }
  return files;
}

}  // namespace fast::data
