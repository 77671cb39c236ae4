#include "algorithm/row.hpp"
#include "core/closest.hpp"

namespace fast::algorithm {
namespace {

struct Entry {
  std::string_view name;
  const Row* row;
};
constexpr Entry entries[] = {
#define FAST_ROW(name) {#name, &rows::name},
#include "algorithm/rows.inc"
#undef FAST_ROW
};

}  // namespace

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Entry& entry : entries) all.push_back(entry.name);
  return all;
}

Parameters parameters_from(const std::vector<std::string>& assignments) {
  Parameters parameters;
  for (const std::string& text : assignments) {
    const std::size_t equals = text.find('=');
    require(equals != std::string::npos && equals > 0, ErrorKind::argument,
            "algorithm option: \"{}\"; KEY=VALUE is required", text);
    const bool added = parameters.emplace(text.substr(0, equals), text.substr(equals + 1)).second;
    require(added, ErrorKind::argument, "algorithm option: \"{}\" is given twice; give it once",
            text.substr(0, equals));
  }
  return parameters;
}

Rule by_name(std::string_view name, const Parameters& parameters) {
  for (const Entry& entry : entries) {
    if (entry.name != name) continue;
    ParameterReader reader(name, parameters);
    auto algorithm = entry.row->make(reader);
    reader.require_all_known();
    return algorithm;
  }
  fail(ErrorKind::argument, "algorithm: \"{}\" is unknown; choose one of {}{}", name,
       fmt::join(names(), ", "), did_you_mean(name, names()));
}

}  // namespace fast::algorithm
