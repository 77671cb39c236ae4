#include "exchange/collective/deaths.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fast/core/error.hpp>
#include <fast/core/wait_check.hpp>
#include <thread>

namespace fast::exchange {
namespace {

constexpr auto look_again = std::chrono::milliseconds(20);

bool has(const std::vector<int>& workers, int worker) {
  return std::ranges::count(workers, worker) > 0;
}

/// The workers below `rank` that live.
std::vector<int> living_below(int rank, const std::vector<int>& ended) {
  std::vector<int> living;
  for (int worker = 0; worker < rank; ++worker)
    if (!has(ended, worker)) living.push_back(worker);
  return living;
}

/// Whether this worker is the one that reports.
bool reports(const ExitReports& ends, int rank, Seconds patience) {
  for (const Deadline waiting(Seconds(0));; std::this_thread::sleep_for(look_again)) {
    if (!ends.failed().empty()) return false;
    const auto missing = static_cast<double>(living_below(rank, ends.all()).size());
    if (waiting.elapsed_s() >= missing * patience.count()) return true;
    check_wait();
  }
}

}  // namespace

void stop_for_failure(const ExitReports& ends, int rank) {
  const std::vector<int> failed = ends.failed();
  require(failed.empty(), ErrorKind::peer_failed,
          "all-reduce: worker {} stops because worker {} failed", rank, fmt::join(failed, ", "));
}

void fail_without(const ExitReports& ends, int rank, Seconds patience) {
  if (ends.all().empty()) return;
  const ErrorKind kind =
      reports(ends, rank, patience) ? ErrorKind::deadline : ErrorKind::peer_failed;
  fail(kind,
       "all-reduce: worker {} is gone; an all-reduce needs every worker, take a rule that averages "
       "with neighbors to go on without it",
       fmt::join(ends.all(), ", "));
}

}  // namespace fast::exchange
