// Warnings about edges to other hosts.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <fast/core/log.hpp>
#include <functional>
#include <string_view>
#include <utility>

namespace fast::exchange {

/// Of one worker. Messages name workers by their seats where there are spares.
class RemoteLog {
 public:
  /// `number_of`: ExchangeOptions::number_of.
  RemoteLog(int rank, LogSink sink, std::function<int(int rank)> number_of = {})
      : rank_(rank), sink_(std::move(sink)), number_of_(std::move(number_of)) {}

  int number_of(int rank) const { return number_of_ ? number_of_(rank) : rank; }
  /// An error of the sink does not end training.
  void warn(std::string_view text) const noexcept {
    try {
      if (sink_) sink_(LogLevel::warning, fmt::format("worker {}: {}", number_of(rank_), text));
    } catch (const std::exception&) {
      return;
    }
  }

 private:
  int rank_;
  LogSink sink_;
  std::function<int(int)> number_of_;
};

}  // namespace fast::exchange
