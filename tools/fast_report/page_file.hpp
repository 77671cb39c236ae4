// The file that a page is written to.
#pragma once

#include <filesystem>

namespace fast_report {

/// Throws fast::Error (argument) when `path` is a file that fast-report did not write, unless
/// `overwrite`. Throws fast::Error (resource) when it cannot be written. A file that begins as a
/// page of fast-report does is a report.
void require_replaceable(const std::filesystem::path& path, bool overwrite);

}  // namespace fast_report
