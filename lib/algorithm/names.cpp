#include <fmt/ranges.h>
#include <fast/algorithm/algorithm.hpp>
#include <fast/core/error.hpp>

namespace fast::algorithm {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Algorithm> (*make)();
};
constexpr Entry entries[] = {{"none", none}, {"awc", awc}, {"atc", atc}, {"allreduce", allreduce}};

}  // namespace

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Entry& entry : entries) all.push_back(entry.name);
  return all;
}

std::unique_ptr<Algorithm> by_name(std::string_view name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry.make();
  }
  fail(ErrorKind::argument, "algorithm: \"{}\" is unknown; choose one of {}", name,
       fmt::join(names(), ", "));
}

}  // namespace fast::algorithm
