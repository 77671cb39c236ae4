#include "algorithm/row.hpp"
#include "core/registry.hpp"

namespace fast::algorithm {
namespace {

/// In the order of the documentation.
constexpr Named<const Row*> entries[] = {
    {"none", &rows::none},
    {"awc", &rows::awc},
    {"atc", &rows::atc},
    {"local", &rows::local},
    {"gossip_pga", &rows::gossip_pga},
    {"gradient_tracking", &rows::gradient_tracking},
    {"d2", &rows::d2},
    {"quasi_global_momentum", &rows::quasi_global_momentum},
    {"decentlam", &rows::decentlam},
    {"choco", &rows::choco},
    {"push_sum", &rows::push_sum},
    {"event_triggered", &rows::event_triggered},
    {"pairwise", &rows::pairwise},
    {"diloco", &rows::diloco},
    {"noloco", &rows::noloco},
    {"gasloc", &rows::gasloc},
    {"awc_gasloc", &rows::awc_gasloc},
    {"sparta", &rows::sparta},
    {"allreduce", &rows::allreduce},
    {"gradient_exchange", &rows::gradient_exchange},
};
constexpr Registry registry{entries, "algorithm: \"{}\" is unknown; choose one of {}"};

}  // namespace

std::vector<std::string_view> names() { return registry.names(); }

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
  const Row& row = *registry.at(name).value;
  ParameterReader reader(name, parameters);
  auto algorithm = row.make(reader);
  reader.require_all_known();
  return algorithm;
}

}  // namespace fast::algorithm
