// A part of a minibatch, for micro-batches.
#pragma once

#include <fast/core/batch.hpp>

namespace fast {

/// The samples [first, first + count) of a batch. The batch's memory stays in use.
Batch part_of(const Batch& batch, std::size_t first, std::size_t count);

}  // namespace fast
