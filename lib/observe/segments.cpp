#include "observe/segments.hpp"

#include <chrono>

namespace fast::observe {
namespace {
constexpr auto longest_wait = std::chrono::milliseconds(100);
constexpr std::size_t most_waiting = std::size_t{64} << 10U;
}  // namespace

void Segments::add_heading(std::string_view bytes) {
  heading_ += bytes;
  append(bytes);
}

void Segments::append(std::string_view bytes) {
  if (files_[current_]->size_bytes() + waiting_.size() + bytes.size() > most_bytes_) turn();
  waiting_ += bytes;
  if (waiting_.size() >= most_waiting || Clock::now() - flushed_ >= longest_wait) flush();
}

void Segments::flush() {
  files_[current_]->append(waiting_);
  waiting_.clear();
  flushed_ = Clock::now();
}

void Segments::turn() {
  flush();
  current_ = 1 - current_;
  files_[current_]->clear();
  waiting_ = heading_;
}

}  // namespace fast::observe
