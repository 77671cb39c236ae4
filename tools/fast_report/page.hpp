// The report as one HTML page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fast_report/html.hpp"
#include "fast_report/run.hpp"

namespace fast_report {

/// The second line of every page: how fast-report knows its own files.
inline constexpr std::string_view page_mark = "<!-- written by fast-report";

/// A page that needs no network and no other file. At least one run; with several, it begins with
/// their comparison.
std::string page_of(const std::vector<Run>& runs);

/// The part of a page about one run: findings, figures, options.
std::string section_of(const Run& run, Figures& figures);

/// What to call each run: its directory's name, or the path where names are equal.
std::vector<std::string> names_of(const std::vector<Run>& runs);

// The file that a page is written to.

/// Throws fast::Error (argument) when `path` is a file that fast-report did not write, unless
/// `overwrite`. Throws fast::Error (resource) when it cannot be written. A file that begins as a
/// page of fast-report does is a report.
void require_replaceable(const std::filesystem::path& path, bool overwrite);

}  // namespace fast_report
