#include "fast_report/run.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fstream>

#include "core/message.hpp"

namespace fast_report {

using nlohmann::json;

namespace {

/// 2^53: beyond it, a double is no exact count.
constexpr double most_exact = 9007199254740992.0;

void take(const std::string& line, bool ended, JsonLines& into) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  json object = json::parse(line, nullptr, false);
  if (object.is_object()) {
    into.objects.push_back(std::move(object));
  } else if (ended) {
    ++into.unreadable;
  } else {
    into.cut = true;
  }
}

}  // namespace

JsonLines read_json_lines(const std::filesystem::path& path) {
  const std::string reason = fast::why_unreadable_file(path);
  fast::require(reason.empty(), fast::ErrorKind::data, "{}: {}", path.string(), reason);
  std::ifstream in(path, std::ios::binary);
  JsonLines lines;
  std::string line;
  while (std::getline(in, line)) take(line, !in.eof(), lines);
  return lines;
}

const json* Fields::find(const std::string& name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::has(const std::string& name) const { return find(name) != nullptr; }

std::optional<double> Fields::number(const std::string& name) const {
  const json* value = find(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double number = value->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> Fields::integer(const std::string& name) const {
  const auto value = number(name);
  const bool whole = value && *value == std::floor(*value) && std::abs(*value) <= most_exact;
  return whole ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

std::optional<int> as_rank(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const double rank = value.get<double>();
  return rank >= 0 && rank < static_cast<double>(most_ranks) ? std::optional(static_cast<int>(rank))
                                                             : std::nullopt;
}

std::optional<int> Fields::rank(const std::string& name) const {
  const json* value = find(name);
  return value == nullptr ? std::nullopt : as_rank(*value);
}

std::optional<std::string> Fields::text(const std::string& name) const {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number() || value->is_boolean()) return value->dump();
  return std::nullopt;
}

std::vector<int> Fields::ranks(const std::string& name) const {
  std::vector<int> ranks;
  const json* list = find(name);
  if (list == nullptr || !list->is_array()) return ranks;
  for (const json& entry : *list) {
    if (const auto rank = as_rank(entry)) ranks.push_back(*rank);
  }
  return ranks;
}

void TimeSpent::add(const TimeSpent& other) {
  for (const auto& [phase, seconds] : other.phases_s) phases_s[phase] += seconds;
  for (const auto& [peer, seconds] : other.waits_s) waits_s[peer] += seconds;
}

double TimeSpent::seconds() const {
  double sum = 0;
  for (const auto& [phase, seconds] : phases_s) sum += seconds;
  return sum;
}

double TimeSpent::phase(const std::string& name) const {
  const auto found = phases_s.find(name);
  return found == phases_s.end() ? 0 : found->second;
}

double TimeSpent::wait_share() const {
  const double sum = seconds();
  return sum > 0 ? phase("wait") / sum : 0;
}

const Fields& Run::start() const {
  static const Fields none;
  const Fields* newest = &none;
  int number = -1;
  for (const auto& [rank, worker] : workers) {
    for (const Part& part : worker.parts) {
      if (part.number <= number || part.start.object().empty()) continue;
      newest = &part.start;
      number = part.number;
    }
  }
  return *newest;
}

std::optional<std::string> Run::option(const std::string& name) const {
  const auto found = std::ranges::find(options, name, &Option::name);
  return found == options.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace fast_report
