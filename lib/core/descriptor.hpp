// A file descriptor that is closed at the end.
#pragma once

#include <unistd.h>

#include <utility>

namespace fast {

class Descriptor {
 public:
  /// -1: there is none.
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (is_open()) close(value_);
  }
  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

}  // namespace fast
