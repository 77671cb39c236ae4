// Memory of a program's values: what one work leaves, a later one takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace fast::cuda {

/// Works are carried out in the order in which they were added, so that memory is free again as
/// soon as the last value that names it is gone while the program is built.
class ProgramMemory {
 public:
  explicit ProgramMemory(std::function<std::byte*(std::size_t)> allocate)
      : allocate_(std::move(allocate)), free_(std::make_shared<Free>()) {}

  template <class T>
  std::shared_ptr<T> take(std::int64_t elements) {
    const std::size_t wanted = static_cast<std::size_t>(elements) * sizeof(T);
    std::size_t size_bytes = wanted;
    std::byte* memory = nullptr;
    // A block much larger than what is asked for may soon be wanted as it is.
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
