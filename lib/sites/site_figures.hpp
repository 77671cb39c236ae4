// What a site has done, for observers and for the closing table of a run.
#pragma once

#include <fast/core/observer.hpp>
#include <fast/sites/site.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fast::sites {

/// Names and values of scalars: "site/reads", and of each other site "site/of/NAME/round" and so
/// on.
std::vector<std::pair<std::string, double>> scalars_of(const SiteStats& stats);

/// Tells these scalars, and first which of the sites that were `told` before are forgotten.
void tell_figures(const SiteStats& stats, std::set<std::string>& told, Observer& observer,
                  int worker, std::int64_t round);

/// Rows of a table: a name and a text.
std::vector<std::pair<std::string, std::string>> rows_of(const SiteStats& stats);

}  // namespace fast::sites
