// The samples of workers that are gone, where every worker has its own.
#pragma once

#include <fast/topology/schedule.hpp>

#include <cstddef>
#include <set>
#include <vector>

namespace fast::train {

/// What worker `rank` trains on when those in `gone` do not: its own samples of `shards` and its
/// part of theirs, which the living workers that read them in some round divide evenly, in turn.
/// Ascending. Workers of one mind about who is gone take every sample once.
std::vector<std::size_t> samples_with_those_of(const std::set<int>& gone,
                                               const std::vector<std::vector<std::size_t>>& shards,
                                               const Schedule& schedule, int rank);

}  // namespace fast::train
