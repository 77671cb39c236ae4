#include <fast/algorithm/rules.hpp>
#include <fast/core/message.hpp>
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

std::string shell_word(const std::string& text) {
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
  if (!text.empty() && text.find_first_not_of(harmless) == std::string::npos) return text;
  std::string word;
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return fast::printable("'" + word + "'");
}

}  // namespace tools
