#include "chaos/event.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace chaos {
namespace {

const std::vector<std::string> kind_names = {"kill",   "start", "end",  "stop", "slow",
                                             "cut",    "delay", "rate", "loss", "clock",
                                             "memory", "disk",  "save", "host"};

}  // namespace

bool is_of_links(Kind kind) {
  return kind == Kind::cut || kind == Kind::delay || kind == Kind::rate || kind == Kind::loss;
}

bool is_of_training(Kind kind) { return kind == Kind::disk || kind == Kind::save; }

std::string name(Kind kind) { return kind_names.at(static_cast<std::size_t>(kind)); }

Kind kind_named(const std::string& name) {
  const auto found = std::find(kind_names.begin(), kind_names.end(), name);
  if (found == kind_names.end()) {
    throw std::invalid_argument(
        fmt::format("event \"{}\": choose from {}", name, fmt::join(kind_names, ", ")));
  }
  return static_cast<Kind>(found - kind_names.begin());
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> all;
  for (std::size_t i = 0; i < kind_names.size(); ++i) all.push_back(static_cast<Kind>(i));
  return all;
}

std::string write(const Event& event) {
  return fmt::format("{}:{}@{}+{}/{}*{}", name(event.kind), fmt::join(event.victims, ","),
                     event.round, event.delay_us, event.length_s, event.amount);
}

Event event_from(const std::string& text) {
  const std::size_t colon = text.find(':'), at = text.find('@');
  if (colon == std::string::npos || at == std::string::npos || at < colon)
    throw std::invalid_argument("event \"" + text +
                                "\": KIND:VICTIMS@ROUND+US/S*AMOUNT is required");
  Event event;
  event.kind = kind_named(text.substr(0, colon));
  std::istringstream victims(text.substr(colon + 1, at - colon - 1));
  for (std::string victim; std::getline(victims, victim, ',');)
    event.victims.push_back(std::stoi(victim));
  char plus = 0, slash = 0, star = 0;
  std::istringstream rest(text.substr(at + 1));
  rest >> event.round >> plus >> event.delay_us >> slash >> event.length_s >> star >> event.amount;
  if (!rest || plus != '+' || slash != '/' || star != '*')
    throw std::invalid_argument("event \"" + text +
                                "\": KIND:VICTIMS@ROUND+US/S*AMOUNT is required");
  return event;
}

}  // namespace chaos
