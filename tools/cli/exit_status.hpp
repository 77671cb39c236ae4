// Exit statuses, the same of all programs. 0: all that was asked for is done.
#pragma once

#include <exception>
#include <functional>
#include <string_view>

namespace tools {

inline constexpr int failed = 1;
/// The command line is refused: an option, a value or a name that is unknown or does not fit.
inline constexpr int wrong_usage = 2;

/// Of a program that ends by this error.
int status_of(const std::exception& error);

/// To be called first: no file that is opened later takes the number of a standard stream that is
/// closed. Writes to such a stream fail.
void fill_streams();

/// Writes what standard output still holds. Returns the status; failed, after a message, if it was
/// 0 and text could not be written.
int with_output(int status);

/// The main function of a program: fill_streams(), the program, with_output(). An error is told as
/// "NAME: TEXT".
int run_program(std::string_view name, const std::function<int()>& program);

}  // namespace tools
