// The rows of a worker's options. A new option is a member of WorkerOptions and a row here.
#pragma once

#include <fast/worker/worker.hpp>

#include <string>
#include <vector>

#include "options/option_table.hpp"

namespace fast {

/// All options of a worker that can be written as text, except those of RuleChoice. Functions and
/// devices cannot.
void add_rows(options::OptionTable& table, WorkerOptions& worker);

/// The rule of a worker as text.
struct RuleChoice {
  std::string name = "awc";
  std::vector<std::string> options;  ///< "period=8"

  /// Throws Error(argument) for an option that the rule does not have.
  algorithm::Rule rule() const;
};
void add_rows(options::OptionTable& table, RuleChoice& rule);

}  // namespace fast
