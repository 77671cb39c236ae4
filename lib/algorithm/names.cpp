#include "algorithm/parameters.hpp"

namespace fast::algorithm {
namespace {

using Reader = ParameterReader;
using Made = std::unique_ptr<Algorithm>;

Made make_local(Reader& reader) {
  LocalOptions o;
  reader.read("period", o.period);
  return local(o);
}

Made make_gossip_pga(Reader& reader) {
  GossipPgaOptions o;
  reader.read("period", o.period);
  return gossip_pga(o);
}

Made make_d2(Reader& reader) {
  D2Options o;
  reader.read("strict", o.strict);
  return d2(o);
}

Made make_quasi_global_momentum(Reader& reader) {
  QuasiGlobalMomentumOptions o;
  reader.read("momentum", o.momentum);
  reader.read("mu", o.mu);
  return quasi_global_momentum(o);
}

Made make_decentlam(Reader& reader) {
  DecentLamOptions o;
  reader.read("momentum", o.momentum);
  return decentlam(o);
}

Made make_choco(Reader& reader) {
  ChocoOptions o;
  reader.read("top_k", o.top_k);
  reader.read("fraction", o.fraction);
  reader.read("consensus_step", o.consensus_step);
  return choco(o);
}

Made make_event_triggered(Reader& reader) {
  EventTriggeredOptions o;
  reader.read("threshold", o.threshold);
  reader.read("horizon", o.horizon);
  return event_triggered(o);
}

template <Made (*Make)()>
Made plain(Reader&) {
  return Make();
}

struct Entry {
  std::string_view name;
  Made (*make)(Reader&);
};
constexpr Entry entries[] = {
    {"none", plain<none>},
    {"awc", plain<awc>},
    {"atc", plain<atc>},
    {"local", make_local},
    {"gossip_pga", make_gossip_pga},
    {"gradient_tracking", plain<gradient_tracking>},
    {"d2", make_d2},
    {"quasi_global_momentum", make_quasi_global_momentum},
    {"decentlam", make_decentlam},
    {"choco", make_choco},
    {"push_sum", plain<push_sum>},
    {"event_triggered", make_event_triggered},
    {"pairwise", plain<pairwise>},
    {"allreduce", plain<allreduce>},
    {"gradient_exchange", plain<gradient_exchange>},
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

std::unique_ptr<Algorithm> by_name(std::string_view name, const Parameters& parameters) {
  for (const Entry& entry : entries) {
    if (entry.name != name) continue;
    Reader reader(name, parameters);
    auto algorithm = entry.make(reader);
    reader.require_all_known();
    return algorithm;
  }
  fail(ErrorKind::argument, "algorithm: \"{}\" is unknown; choose one of {}", name,
       fmt::join(names(), ", "));
}

}  // namespace fast::algorithm
