// A site as text: the rows of its options, for programs.
#pragma once

#include <fast/sites/site.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "options/option_table.hpp"

namespace fast::sites {

struct SiteChoice {
  std::string name, url;  ///< without a name: no other sites
  std::string algorithm = "gasloc", topology = "ring", codec = "identity";
  std::vector<std::string> algorithm_options;
  SiteOptions options;  ///< the members above replace its own

  /// Null without a name. Throws Error(argument) and Error(topology) as join().
  std::shared_ptr<SiteExchange> join() const;
};
void add_rows(options::OptionTable& table, SiteChoice& site);

}  // namespace fast::sites
