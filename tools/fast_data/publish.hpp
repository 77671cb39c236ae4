// Fills a stream with the samples of a data set.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/data/load.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.hpp"

namespace fast_data {

// Another order of the samples of a data set.

/// A function of the number of samples and the seed. Samples are read when they are needed.
fast::data::Dataset shuffled(const fast::data::Dataset& samples, std::uint64_t seed);

/// Of an argument that names a data set.
inline constexpr char data_help[] =
    "a data set, a file, a pattern or a directory, as fast-train --data takes them";

struct PublishOptions {
  std::string from, to, part = "train", id;
  std::optional<std::uint64_t> shuffle;
  std::size_t outstanding = 256;
  std::size_t repeat = 1;
};

void add_options(tools::Command& command, PublishOptions& options);

void publish(const PublishOptions& options, const fast::data::LoadOptions& reading);

}  // namespace fast_data
