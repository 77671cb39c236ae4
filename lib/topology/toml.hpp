// toml++, without exceptions of its own. On some malformed files ("[#") version 3.3 fails an
// assertion, in release builds an assumption, just before the branch that would report the error;
// with neither it gets there.
#pragma once

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
