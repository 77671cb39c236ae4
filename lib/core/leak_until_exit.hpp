// What others may still write to when its owner goes.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace fast {

/// To the process's end.
template <class T>
void leak_until_exit(T what) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<T>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(what));
}

}  // namespace fast
