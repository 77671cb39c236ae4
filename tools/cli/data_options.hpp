// The options that say how data is read, for all programs that read data.
#pragma once

#include <cstdint>
#include <fast/data/load.hpp>
#include <optional>
#include <string>

#include "options/option_table.hpp"

namespace tools {

struct DataOptions {
  std::string target, features, test_data, train_split, test_split;
  fast::data::TargetKind target_type = fast::data::TargetKind::automatic;
  int classes = 0;
  std::optional<double> test_share;
  std::uint64_t split_seed = 1;
  bool stream = false;
};

/// Adds the rows to the table's present group. Workers must agree on them.
void add_rows(fast::options::OptionTable& table, DataOptions& options);

/// `limit`: of samples in either part; 0: all.
fast::data::LoadOptions load_options(const DataOptions& options, std::size_t limit);

/// The options as a text: equal for equal options.
std::string text_of(const DataOptions& options);

}  // namespace tools
