#include "chaos/features.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace chaos {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const std::vector<Feature>& features() {
  static const std::vector<Feature> all = {
      {"accumulate", {"--accumulate", "2"}, {}},
      {"adamw",
       {"--optimizer", "adamw"},
       {"averaged_momentum", "quasi_global_momentum", "decentlam", "edm", "gut"}},
      {"balance", {"--balance", "measured"}, {"none", "take_over"}},
      {"clip", {"--clip-norm", "1"}, {}},
      {"ema", {"--ema", "0.9"}, {"rotating", "validation"}},
      {"mix", {"--mix-every", "2"}, {"none", "allreduce", "rotating"}},
      {"mix_times", {"--mix-times", "3"}, {"rotating"}, {"awc", "atc", "local", "pairwise"}},
      {"momentum_after", {"--algorithm-option", "atc=true"}, {}, {"averaged_momentum"}},
      {"take_over", {"--take-over", "--shards", "dirichlet:0.5"}, {"allreduce", "balance"}},
      {"validation", {"--validation", "0.2"}, {"ema"}},
  };
  return all;
}

std::vector<std::string> options_of_features(const Plan& plan) {
  std::vector<std::string> options;
  for (const Feature& feature : features()) {
    if (has(plan.with, feature.name))
      options.insert(options.end(), feature.options.begin(), feature.options.end());
  }
  return options;
}

std::string why_no_features(const Plan& plan) {
  if (!plan.with.empty() && !plan.is_training()) return "fast-train alone has such options";
  for (const std::string& name : plan.with) {
    const auto found = std::find_if(features().begin(), features().end(),
                                    [&](const Feature& one) { return one.name == name; });
    if (found == features().end()) return fmt::format("there is no \"{}\"", name);
    for (const std::string& other : found->not_with) {
      const bool in_use = other == "rotating" ? plan.rotating : other == plan.rule;
      if (in_use || has(plan.with, other)) return fmt::format("{} is not for {}", name, other);
    }
    if (!found->only_with.empty() && (!has(found->only_with, plan.rule) || plan.staleness != 0))
      return fmt::format("{} is not for {} at staleness {}", name, plan.rule, plan.staleness);
  }
  return "";
}

}  // namespace chaos
