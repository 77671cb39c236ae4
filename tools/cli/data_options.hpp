// The options that say how data is read, for all programs that read data.
#pragma once

#include <cstdint>
#include <fast/data/load.hpp>
#include <optional>
#include <string>

#include "options/option_table.hpp"

namespace tools {

/// `--resize model`: the size that the model takes.
inline constexpr fast::data::ImageSize size_of_model{-1, -1};

/// Of an argument that names a data set.
inline constexpr char data_help[] =
    "a data set, a file, a pattern or a directory, as fast-train --data takes them";

struct DataOptions {
  std::string target, features, test_data, train_split, test_split;
  fast::data::TargetKind target_type = fast::data::TargetKind::automatic;
  int classes = 0;
  std::optional<double> test_share;
  std::uint64_t split_seed = 1;
  bool stream = false;
  std::optional<fast::data::ImageSize> resize;  ///< or size_of_model
};

/// Adds the rows to the table's present group. Workers must agree on them.
void add_rows(fast::options::OptionTable& table, DataOptions& options);

/// `limit`: of samples in either part; 0: all. `model` is the size for size_of_model; throws
/// Error(argument) if that is asked for and there is none.
fast::data::LoadOptions load_options(const DataOptions& options, std::size_t limit,
                                     const std::optional<fast::data::ImageSize>& model = {});

/// The options as a text: equal for equal options.
std::string text_of(const DataOptions& options);

}  // namespace tools
