// The files of a set of shards, by a pattern.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

/// Returns the files that a pattern names, each once, in the order of the pattern and sorted within
/// a glob. `{000..011}` stands for the numbers of a range, with as many digits as its first one.
/// `{a,b}` stands for each of the texts. `*`, `?` and `[...]` match as in a shell. Throws
/// Error(argument) for a range without an end or of more than a million files. Throws Error(data),
/// naming the pattern or file, when a file is not there.
std::vector<std::filesystem::path> shard_files(const std::string& pattern);

/// It has one of the characters that shard_files() replaces.
bool is_pattern(std::string_view path);

}  // namespace fast::data
