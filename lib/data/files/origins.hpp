// Numbers of 64 bits as floats, so that large values keep their small differences.
#pragma once

#include <fast/data/load.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

/// How samples that lie one after the other are divided into channels. Each column of a table is a
/// channel of one value.
struct ChannelForm {
  std::size_t channels = 1, plane = 1;
  std::function<std::string(std::size_t)> name;  ///< of a channel, for messages
};

/// What is subtracted from the values of each channel before they become floats. It is 0 for most
/// channels. It is the smallest value of a channel whose values are not floats by themselves, and
/// that span few steps of a float only, as seconds since 1970 do. The result is empty if it is 0
/// for all channels. Throws Error(data) for a channel whose differences are too small for doubles,
/// or for floats. NaN counts for nothing.
std::vector<double> origins_of(std::span<const double> values, const ChannelForm& form);

/// The values less the origins of their channels. Values that no float holds become infinite.
std::vector<float> less_origins(std::span<const double> values, const std::vector<double>& origins,
                                const ChannelForm& form);

/// Throws Error(data), which begins with `name`, for numbers to be predicted that floats cannot
/// tell apart.
void check_targets_as_floats(std::span<const double> targets, const std::string& name);

/// One sentence for people, of each channel with an origin.
std::vector<std::string> origin_notes(const std::vector<double>& origins, const ChannelForm& form);

/// Throws Error(data) if the values of `splits` are stored less an origin. `target` is what has no
/// place for origins, as "packed shards".
void refuse_origins(const Splits& splits, std::string_view from, std::string_view target);

}  // namespace fast::data
