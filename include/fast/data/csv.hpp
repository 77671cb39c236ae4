// Reader of tables of comma-separated values (RFC 4180), with the columns' names in the first line.
#pragma once

#include <fast/data/load.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace fast::data {

/// Reads the columns that `options` names: `options.features` in that order (empty: all other
/// columns with a name whose first value is a number), and `options.target`. A column whose first
/// values are missing, and whose next value is a number, is an error. Fields may be quoted; lines
/// end with LF or CRLF; empty lines are skipped.
///
/// The samples have the shape {features}. With TargetKind::numbers, targets are floats, one a
/// sample. With TargetKind::classes they are classes: if all values of the column are numbers,
/// these must be whole numbers from 0 on, and there are `options.classes` classes (0: the largest +
/// 1). Otherwise each different text is a class; the classes are sorted by bytes.
///
/// The test part is `options.test_data` if that is given: a table with the same columns. Otherwise
/// it is a share `options.test_share` of the rows, chosen at random by `options.split_seed`; rows
/// stay in their order. The normalization has the moments of each feature in the training part.
///
/// Throws Error(data), naming file, line and column, for rows of another length than the header,
/// fields that are no finite numbers, values that are no classes, and files that cannot be read.
/// Throws Error(argument) for a column that is not there, and for parts without samples.
Splits read_csv(const std::filesystem::path& path, const LoadOptions& options);

/// Parses a text in memory. `path` is for messages.
Splits parse_csv(std::string_view text, const std::string& path, const LoadOptions& options);

}  // namespace fast::data
