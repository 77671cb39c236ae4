#include "fast/core/error.hpp"

#include "core/message.hpp"

namespace fast {

/// Names from files and paths are in messages: a terminal is to show them, not to obey them.
void fail_with(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, printable(fmt::vformat(format, args), Newlines::keep));
}

}  // namespace fast
