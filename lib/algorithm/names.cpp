#include "algorithm/rule_entry.hpp"
#include "core/registry.hpp"

namespace fast::algorithm {
namespace {

/// In the order of the documentation.
constexpr Named<const RuleEntry*> entries[] = {
    {"none", &entries::none},
    {"awc", &entries::awc},
    {"atc", &entries::atc},
    {"local", &entries::local},
    {"gossip_pga", &entries::gossip_pga},
    {"gradient_tracking", &entries::gradient_tracking},
    {"d2", &entries::d2},
    {"edm", &entries::edm},
    {"gut", &entries::gut},
    {"quasi_global_momentum", &entries::quasi_global_momentum},
    {"averaged_momentum", &entries::averaged_momentum},
    {"decentlam", &entries::decentlam},
    {"relay_sum", &entries::relay_sum},
    {"choco", &entries::choco},
    {"push_sum", &entries::push_sum},
    {"event_triggered", &entries::event_triggered},
    {"pairwise", &entries::pairwise},
    {"a2cid2", &entries::a2cid2},
    {"diloco", &entries::diloco},
    {"noloco", &entries::noloco},
    {"gasloc", &entries::gasloc},
    {"awc_gasloc", &entries::awc_gasloc},
    {"sparta", &entries::sparta},
    {"allreduce", &entries::allreduce},
    {"gradient_exchange", &entries::gradient_exchange},
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
  const RuleEntry& row = *registry.at(name).value;
  ParameterReader reader(name, parameters);
  auto algorithm = row.make(reader);
  reader.require_all_known();
  return algorithm;
}

}  // namespace fast::algorithm
