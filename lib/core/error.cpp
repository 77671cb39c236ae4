#include "fast/core/error.hpp"

#include "core/message.hpp"

namespace fast {

/// Names from files and paths are in messages: a terminal is to show them, not to obey them.
void fail_with(ErrorKind kind, const std::string& message) {
  throw Error(kind, printable(message, Newlines::keep));
}

}  // namespace fast
