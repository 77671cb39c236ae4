// The rows of the options that say how data is read: of programs and of the C interface.
#pragma once

#include <fast/data/load.hpp>

#include <optional>
#include <string>

#include "options/option_table.hpp"

namespace fast::data {

/// LoadOptions::resize for the size that the model takes, until resolve_size().
inline constexpr ImageSize size_of_model{-1, -1};

/// Adds the rows to the table's present group, except that of the limit. Workers must agree on
/// them.
void add_rows(options::OptionTable& table, LoadOptions& load);
/// LoadOptions::limit, for those who train.
void add_limit(options::OptionTable& table, LoadOptions& load);

/// Puts `model` in the place of size_of_model. Throws Error(argument) if that is asked for and
/// there is no model.
void resolve_size(LoadOptions& load, const std::optional<ImageSize>& model = {});

/// The rows as a text: equal for equal options.
std::string text_of(const LoadOptions& load);

}  // namespace fast::data
