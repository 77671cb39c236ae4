#include "cli/exit_status.hpp"

#include <fast/core/error.hpp>

namespace tools {

int status_of(const std::exception& error) {
  const auto* known = dynamic_cast<const fast::Error*>(&error);
  if (known == nullptr) return failed;
  const bool is_refused =
      known->kind() == fast::ErrorKind::argument || known->kind() == fast::ErrorKind::topology;
  return is_refused ? wrong_usage : failed;
}

}  // namespace tools
