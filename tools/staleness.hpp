// Staleness bounds as text, as the option of a worker has them.
#pragma once

#include <cstdint>
#include <string>

namespace tools {

/// "0", "2" or "inf" as a staleness bound. Throws Error(argument) for others.
std::int64_t staleness_of(const std::string& text);
std::string staleness_text(std::int64_t bound);

}  // namespace tools
