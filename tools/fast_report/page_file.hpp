// The file that a page is written to.
#pragma once

#include <filesystem>
#include <string>

namespace fast_report {

/// Throws fast::Error (argument) when `path` is a file that fast-report did not write, unless
/// `overwrite`; and (resource) when it is a directory or its folder is missing. A file that begins
/// as a page of fast-report does is a report.
void require_writable(const std::filesystem::path& path, bool overwrite);

/// Writes all or nothing: a reader never finds a part of a page. Devices and pipes are written
/// directly. Throws fast::Error (resource).
void write_page(const std::filesystem::path& path, const std::string& text);

}  // namespace fast_report
