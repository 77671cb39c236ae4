// Whole files in memory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fast::data {

/// The bytes of a file. Throws Error(data), which begins with `who`, when it cannot be read.
std::string read_text(const std::filesystem::path& path, std::string_view who);

}  // namespace fast::data
