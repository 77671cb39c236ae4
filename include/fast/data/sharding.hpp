// How the training data is divided among workers: alike, or skewed by label as data that was
// gathered in different places is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

/// Even: all samples are dealt anew every epoch. Skewed: every worker keeps its own samples, whose
/// labels are as a draw from Dirichlet(alpha) has them; the smaller alpha, the fewer labels.
struct Sharding {
  std::optional<double> dirichlet_alpha;  ///< empty: even

  std::string text() const;  ///< "even" or "dirichlet:0.1"
};

/// Returns the sharding for a text "even" or "dirichlet:ALPHA". Throws Error(argument) on another
/// text and on an alpha that is not a positive number.
Sharding sharding_from(std::string_view text);

/// Returns every worker's samples, ascending. Each sample belongs to one worker, and parts differ
/// by one sample at most. Worker r's shares of the classes are drawn from Dirichlet(alpha). Then
/// the workers take turns. Each draws a class by its shares, among the classes that have samples
/// left, and takes one of its samples. (In Hsu et al. 2019, arXiv 1909.06335, the clients draw one
/// after the other.) The result is a function of the arguments alone. Throws Error(argument) on
/// fewer samples than workers and on an alpha that is not positive. Labels lie in [0, classes).
std::vector<std::vector<std::size_t>> dirichlet_parts(std::span<const std::int32_t> labels,
                                                      int classes, int workers, double alpha,
                                                      std::uint64_t seed);

}  // namespace fast::data
