// Starts a program and waits for it, but not for ever.
#pragma once

#include <fast/core/deadline.hpp>

#include <string>
#include <vector>

namespace seats {

/// Runs words[0] with the words as its arguments; what it prints goes to the file `log`. The exit
/// status; negative if it did not end within `limit`: then it is killed with all that it started.
int run_to_the_end(std::vector<std::string> words, const std::string& log, fast::Seconds limit);

/// A process of the shell continues this one, which then stops.
void suspend(double seconds);

}  // namespace seats
