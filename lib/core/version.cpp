#include <fast/core/version.hpp>

namespace fast {

std::string_view version() noexcept { return FAST_VERSION; }

std::string_view commit() noexcept { return FAST_COMMIT; }

std::string_view compiler() noexcept { return FAST_COMPILER; }

}  // namespace fast
