// What a site has done, for observers and for the closing table of a run.
#pragma once

#include <fast/sites/site.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fast::sites {

/// Names and values of scalars. The names live as long as the program.
std::vector<std::pair<std::string_view, double>> scalars_of(const SiteStats& stats);

/// Rows of a table: a name and a text.
std::vector<std::pair<std::string, std::string>> rows_of(const SiteStats& stats);

}  // namespace fast::sites
