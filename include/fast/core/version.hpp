#pragma once

#include <string_view>

namespace fast {

/// "major.minor.patch" of the library linked in.
std::string_view version() noexcept;

}  // namespace fast
