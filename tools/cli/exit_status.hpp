// Exit statuses, the same of all programs. 0: all that was asked for is done.
#pragma once

#include <exception>

namespace tools {

inline constexpr int failed = 1;
/// The command line is refused: an option, a value or a name that is unknown or does not fit.
inline constexpr int wrong_usage = 2;

/// Of a program that ends by this error.
int status_of(const std::exception& error);

}  // namespace tools
