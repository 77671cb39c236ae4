// toml++, without exceptions of its own. On some malformed files ("[#") version 3.3 fails an
// assertion (an assumption in release builds) just before the branch that would report the error;
// here it comes to report it.
#pragma once

#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
