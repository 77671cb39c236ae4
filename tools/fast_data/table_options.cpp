#include "fast_data/table_options.hpp"

namespace fast_data {

using namespace fast::options;

void TableOptions::add_to(tools::Command& command, const std::string& example) {
  command.begin_group("Reading", example);
  for (const OptionSpec& row : table_.rows()) add(command, row);
}

void TableOptions::add(tools::Command& command, const OptionSpec& row) {
  const std::string name = "--" + dashed(row.name);
  std::vector<std::string>& texts = texts_.emplace_back();
  if (row.kind == Kind::flag) {
    command.add_flag_callback(
        name, [&texts] { texts = {"true"}; }, row.help);
    return;
  }
  std::vector<std::string> words = row.names;
  words.insert(words.end(), row.offers.begin(), row.offers.end());
  CLI::Option* option = command.add_option(name, texts, tools::full_help(row));
  option->expected(1)->type_name(tools::placeholder(row))->default_str(tools::default_of(row));
  tools::offer(option, words);
}

void TableOptions::take() {
  auto texts = texts_.begin();
  while (texts != texts_.end()) {
    for (const OptionSpec& row : table_.rows()) {
      if (!texts->empty()) table_.set(table_.at(row.name), *texts, "--" + dashed(row.name));
      ++texts;
    }
  }
}

}  // namespace fast_data
