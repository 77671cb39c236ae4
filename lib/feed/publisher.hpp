// Publishes the samples of a data set.
#pragma once

#include <fast/data/dataset.hpp>

#include <functional>
#include <string>

#include "stream/broker.hpp"

namespace fast::feed {

struct Publication {
  std::string subject;
  /// Sample i has the id "ID-i": the stream drops a second message of an id within its duplicate
  /// window.
  std::string id;
  std::size_t outstanding = 256;  ///< messages that wait for the stream's answer
};

struct Published {
  std::size_t stored = 0, repeated = 0, left_out = 0;
};

/// In their order. Damaged samples are left out, and `left_out` is told why. Throws Error(resource)
/// when messages are not stored, and Error(argument) for samples that are too large for a message.
Published publish(const data::Dataset& samples, stream::Sink& sink, const Publication& publication,
                  const std::function<void(const std::string& why)>& left_out);

}  // namespace fast::feed
