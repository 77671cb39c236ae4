#include "fast_train/rule_table.hpp"

#include <fast/algorithm/rules.hpp>

#include "cli/help.hpp"

namespace fast_train {

using namespace fast;

namespace {

std::string_view needs_of(const algorithm::RuleTraits& rule) {
  using algorithm::MixingRequirement;
  if (rule.topology.scope != algorithm::Scope::neighbors) return "–";
  switch (rule.topology.mixing) {
    case MixingRequirement::anything:
      return "–";
    case MixingRequirement::doubly_stochastic:
      return "doubly stochastic";
    case MixingRequirement::symmetric:
      return "symmetric";
    case MixingRequirement::positive:
      return "symmetric, smallest eigenvalue > -1/3";
    case MixingRequirement::column_stochastic:
      return "column-stochastic";
    case MixingRequirement::matching:
      return "pairs with weights ½";
    case MixingRequirement::complete:
      return "the complete graph, weights 1/N";
    case MixingRequirement::unit:
      return "none: each neighbor counts 1";
  }
  return "";
}

}  // namespace

std::string rules_markdown() {
  std::string text = "<!-- rules -->\n| name | rule | needs of W | source |\n|---|---|---|---|\n";
  for (const std::string_view name : algorithm::names()) {
    const auto rule = algorithm::by_name(name);
    const algorithm::RuleTraits& traits = rule.traits();
    text += fmt::format("| `{}` | {} | {} | {} |\n", name, tools::cell(traits.summary),
                        needs_of(traits), traits.source == "-" ? "–" : traits.source);
  }
  return text + "<!-- end -->\n";
}

}  // namespace fast_train
