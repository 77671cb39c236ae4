// Two files that are written in turn, so that the newest bytes of an endless stream are kept.
#pragma once

#include <fast/core/deadline.hpp>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "observe/output_file.hpp"

namespace fast::observe {

class Segments {
 public:
  /// `size_bytes`: of both together.
  Segments(std::unique_ptr<OutputFile> first, std::unique_ptr<OutputFile> second,
           std::size_t size_bytes)
      : files_{std::move(first), std::move(second)}, most_bytes_(size_bytes / 2) {}
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;
  ~Segments() { flush(); }

  /// Bytes that both files begin with, from now on.
  void add_heading(std::string_view bytes);
  /// Bytes that are not divided. They reach the system within 0.1 s of further calls, or 64 KiB.
  void append(std::string_view bytes);
  void flush();

 private:
  void turn();

  std::array<std::unique_ptr<OutputFile>, 2> files_;
  std::size_t most_bytes_;
  std::size_t current_ = 0;
  std::string heading_, waiting_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace fast::observe
