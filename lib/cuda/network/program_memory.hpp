// Memory for the values of a program. Works reuse the memory of earlier works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace fast::cuda {

/// Works run in the order in which they were added. Memory is therefore free for reuse as soon as,
/// while the program is built, no value refers to it.
class ProgramMemory {
 public:
  explicit ProgramMemory(std::function<std::byte*(std::size_t)> allocate)
      : allocate_(std::move(allocate)), free_(std::make_shared<Free>()) {}

  template <class T>
  std::shared_ptr<T> take(std::int64_t elements) {
    const std::size_t wanted = static_cast<std::size_t>(elements) * sizeof(T);
    std::size_t size_bytes = wanted;
    std::byte* memory = nullptr;
    // A much larger block is kept for a larger request.
    const auto found = free_->lower_bound(wanted);
    if (found != free_->end() && found->first <= 4 * wanted) {
      size_bytes = found->first;
      memory = found->second;
      free_->erase(found);
    } else {
      memory = allocate_(size_bytes);
    }
    return {reinterpret_cast<T*>(memory),
            [free = free_, size_bytes, memory](T*) { free->emplace(size_bytes, memory); }};
  }

 private:
  using Free = std::multimap<std::size_t, std::byte*>;
  std::function<std::byte*(std::size_t)> allocate_;
  std::shared_ptr<Free> free_;
};

}  // namespace fast::cuda
