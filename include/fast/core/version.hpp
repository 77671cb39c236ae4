#pragma once

#include <string_view>

namespace fast {

/// "major.minor.patch" of the library linked in.
std::string_view version() noexcept;
/// The commit that it was built from, as far as CMake knew when it was configured; "unknown".
std::string_view commit() noexcept;
/// "g++ 12.2.0"
std::string_view compiler() noexcept;

}  // namespace fast
