// The options of a table on a command line of CLI11.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "options/option_table.hpp"

namespace fast_data {

class TableOptions {
 public:
  explicit TableOptions(fast::options::OptionTable& table) : table_(table) {}

  /// All rows, as a group of the command's options.
  void add_to(tools::Command& command, const std::string& example);
  /// After parsing. Of the options of several commands, those that were given.
  void take();

 private:
  void add(tools::Command& command, const fast::options::OptionSpec& row);

  fast::options::OptionTable& table_;
  std::list<std::vector<std::string>> texts_;  // places stay
};

}  // namespace fast_data
