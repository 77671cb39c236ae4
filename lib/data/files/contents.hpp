// Whole files in memory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fast::data {

/// The bytes of a file. Throws Error(data), which begins with `who`, when it cannot be read.
std::string read_text(const std::filesystem::path& path, std::string_view who);

/// Of a file whose name ends with .gz, the bytes that it was made of.
std::string read_maybe_compressed(const std::filesystem::path& path, std::string_view who);

/// By the ending: .csv or .tsv, plain or .gz. Letters may be capitals.
bool is_table(std::string_view path);

}  // namespace fast::data
