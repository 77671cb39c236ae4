// Starts runs and waits for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chaos/hosts.hpp"
#include "chaos/plan.hpp"
#include "chaos/verdict.hpp"

namespace chaos {

struct Programs {
  std::string fastrun, train, self;
};

/// The exit status of a command whose output goes to the file. None: it hung, and was ended.
/// `environment`: NAME=VALUE.
std::optional<int> run(const std::vector<std::string>& words,
                       const std::vector<std::string>& environment, const std::string& log,
                       Faults* faults);

/// Of the parabola or LeNet. `hosts` are needed for plans of several.
Ending run_workers(const Programs& programs, const Hosts* hosts, const Plan& plan,
                   const std::string& directory);

std::string contents(const std::string& file);

}  // namespace chaos
