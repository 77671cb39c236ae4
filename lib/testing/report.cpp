#include <fmt/core.h>

#include <algorithm>
#include <fast/testing/conformance.hpp>

namespace fast::testing {

bool Report::passed() const {
  return std::all_of(checks.begin(), checks.end(),
                     [](const Check& check) { return check.failure.empty(); });
}

std::string Report::to_text() const {
  std::string text;
  std::size_t failures = 0;
  for (const Check& check : checks) {
    const bool ok = check.failure.empty();
    text += fmt::format("{:<7} {}\n", ok ? "ok" : "FAILED", check.name);
    if (!ok) text += fmt::format("        {}\n", check.failure);
    failures += ok ? 0 : 1;
  }
  return text + fmt::format("{}: {} checks, {} failures\n", backend, checks.size(), failures);
}

}  // namespace fast::testing
