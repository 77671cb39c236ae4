// An optimizer's step, as an averaging pass takes it in.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace fast {

/// Adds to weights [first, first + weights.size()) of the packed vector what the optimizer makes of
/// their gradients. Called in order for ranges that cover each element once; empty: nothing to add.
/// T is float or double.
template <class T>
using PartUpdate = std::function<void(std::size_t first, std::span<T> weights)>;

}  // namespace fast
