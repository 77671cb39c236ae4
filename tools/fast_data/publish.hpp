// Fills a stream with the samples of a data set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "cli/data_options.hpp"

namespace fast_data {

struct PublishOptions {
  std::string from, to, part = "train", id;
  std::optional<std::uint64_t> shuffle;
  std::size_t outstanding = 256;
  std::size_t repeat = 1;
};

void add_options(tools::Command& command, PublishOptions& options);

void publish(const PublishOptions& options, const tools::DataOptions& reading);

}  // namespace fast_data
