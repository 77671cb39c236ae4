// A training sample as a message of a stream.
#pragma once

#include <fast/data/dataset.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stream/broker.hpp"

namespace fast::feed {

// The body holds the values of one sample, row-major: bytes, or floats of 32 bits, little-endian.
inline constexpr char type_header[] = "X-Tensor-Type";    ///< u8 or f32
inline constexpr char shape_header[] = "X-Tensor-Shape";  ///< 1x28x28; may be left out
inline constexpr char label_header[] = "X-Label";         ///< a class, or several with spaces
inline constexpr char target_header[] = "X-Target";       ///< numbers with spaces between them

/// What a message holds. `values` is a part of the message.
struct Sample {
  std::string_view values;
  std::vector<std::int32_t> labels;
  std::vector<float> targets;
};

/// Throws Error(data) when the message is not a sample of the form of those of `form`, or has
/// values that are not finite, or that are no tokens below `tokens` if that is not 0.
Sample sample_in(const stream::Message& message, const data::Dataset& form,
                 std::int64_t tokens = 0);

/// Of sample `index`. Throws as Dataset::copy() does.
stream::Outgoing message_of(const data::Dataset& samples, std::size_t index,
                            const std::string& subject);

}  // namespace fast::feed
