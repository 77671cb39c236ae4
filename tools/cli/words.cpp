#include <fast/algorithm/rules.hpp>
#include <fast/topology/load.hpp>

#include "cli/program.hpp"

namespace tools {

std::vector<std::string> topology_words(std::vector<std::string> words) {
  for (const fast::TopologyName& topology : fast::topology_names()) {
    words.emplace_back(topology.name);
  }
  words.emplace_back(fast::options::files);
  return words;
}

std::vector<std::string> rule_words() {
  const auto names = fast::algorithm::names();
  return {names.begin(), names.end()};
}

}  // namespace tools
