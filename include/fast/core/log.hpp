// Where the library's few messages go: a function that the caller hands over. It never prints by
// itself.
#pragma once

#include <functional>
#include <string_view>

namespace fast {

enum class LogLevel { debug, info, warning, error };
/// "debug", "info", "warning" or "error". The text lives as long as the program.
const char* name_of(LogLevel level);
/// Called from the thread that has something to say; must not throw. Empty: silence.
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace fast
