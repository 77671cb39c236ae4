#include "hosts/link.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

namespace hosts {
namespace {

constexpr double longest_queue_s = 0.2;

struct Unit {
  std::string name;
  double factor;
};

/// A number with one of the units. None when it is no such text, or negative.
std::optional<double> number(const std::string& text, const std::vector<Unit>& units) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(value >= 0)) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name == end) return value * unit.factor;
  }
  return std::nullopt;
}

std::string set(double& into, const std::string& word, const std::string& text,
                const std::vector<Unit>& units, double most = HUGE_VAL) {
  const auto value = number(text, units);
  if (!value || *value > most)
    return word +
           ": a number from 0 on with a unit is required, as in rate=10mbit, delay=50ms, "
           "loss=5%";
  into = *value;
  return "";
}

const std::vector<Unit> rates{{"bit", 0.125}, {"kbit", 125}, {"mbit", 125e3}, {"gbit", 125e6}};
const std::vector<Unit> times{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
const std::vector<Unit> shares{{"%", 0.01}, {"", 1}};

}  // namespace

double Link::delay() {
  if (settings.jitter_s <= 0) return settings.delay_s;
  if (settings.shape == Shape::normal || settings.delay_s <= 0)
    return std::max(0.0, settings.delay_s + settings.jitter_s * rng_.normal());
  const double ratio = settings.jitter_s / settings.delay_s;
  const double variance = std::log1p(ratio * ratio);
  return settings.delay_s * std::exp(std::sqrt(variance) * rng_.normal() - variance / 2);
}

std::optional<double> Link::leaves_at(double now_s, std::size_t bytes) {
  if (settings.cut || (settings.loss > 0 && rng_.uniform() < settings.loss)) return std::nullopt;
  double sent_s = now_s;
  if (settings.rate_bytes_per_s > 0) {
    const double begins_s = std::max(now_s, free_s_);
    if (begins_s - now_s > longest_queue_s) return std::nullopt;
    sent_s = free_s_ = begins_s + static_cast<double>(bytes) / settings.rate_bytes_per_s;
  }
  last_s_ = std::max(last_s_, sent_s + delay());
  return last_s_;
}

std::string change(const std::string& word, LinkSettings& settings) {
  if (word == "cut" || word == "mend") {
    settings.cut = word == "cut";
    return "";
  }
  if (word == "clear") {
    settings = {};
    return "";
  }
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string text = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "rate") return set(settings.rate_bytes_per_s, word, text, rates);
  if (key == "delay") return set(settings.delay_s, word, text, times);
  if (key == "jitter") return set(settings.jitter_s, word, text, times);
  if (key == "loss") return set(settings.loss, word, text, shares, 1);
  if (key == "shape" && (text == "normal" || text == "lognormal")) {
    settings.shape = text == "normal" ? Shape::normal : Shape::lognormal;
    return "";
  }
  return word +
         ": unknown; choose from rate=, delay=, jitter=, shape=normal, shape=lognormal, "
         "loss=, cut, mend, clear";
}

}  // namespace hosts
