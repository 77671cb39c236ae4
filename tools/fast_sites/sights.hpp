// What an onlooker has seen, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "sites/onlooker.hpp"

namespace fast_sites {

/// A line for each site, and one that says what all train. Where they differ, a warning.
std::string text_of(const std::vector<fast::sites::Sight>& sights);

/// The same for programs. `about` is null where sites differ.
std::string json_of(const std::vector<fast::sites::Sight>& sights, const std::string& run);

}  // namespace fast_sites
