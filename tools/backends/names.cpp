#include <fmt/ranges.h>
#include <fast/core/error.hpp>

#include "backends/registry.hpp"

namespace backends {
namespace {

struct Entry {
  std::string_view name;
  const Row* row;
};
constexpr Entry entries[] = {
#define FAST_ROW(name) {#name, &rows::name},
#include "backends/rows.inc"
#undef FAST_ROW
};

}  // namespace

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Entry& entry : entries) all.push_back(entry.name);
  return all;
}

const Row& by_name(std::string_view name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return *entry.row;
  }
  fast::fail(fast::ErrorKind::argument, "--backend: \"{}\" is unknown; choose one of {}", name,
             fmt::join(names(), ", "));
}

}  // namespace backends
