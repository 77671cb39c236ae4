// What a site has done, for observers and for the closing table of a run.
#pragma once

#include <fast/sites/site.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fast::sites {

/// Names and values of scalars: "site/reads", and of each other site "site/of/NAME/round" and so
/// on.
std::vector<std::pair<std::string, double>> scalars_of(const SiteStats& stats);

/// Rows of a table: a name and a text.
std::vector<std::pair<std::string, std::string>> rows_of(const SiteStats& stats);

}  // namespace fast::sites
