#include <fast/core/version.hpp>

namespace fast {

std::string_view version() noexcept { return FAST_VERSION; }

}  // namespace fast
