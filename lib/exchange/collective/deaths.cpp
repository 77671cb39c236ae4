#include "exchange/collective/deaths.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fast/core/error.hpp>
#include <thread>

namespace fast::exchange {
namespace {
constexpr auto reporting = std::chrono::seconds(1);
}

void fail_without(const std::vector<int>& dead, int rank) {
  if (dead.empty()) return;
  int reporter = 0;
  while (std::count(dead.begin(), dead.end(), reporter) > 0) ++reporter;
  if (rank != reporter) std::this_thread::sleep_for(reporting);
  fail(rank == reporter ? ErrorKind::deadline : ErrorKind::peer_failed,
       "all-reduce: worker {} is gone; an all-reduce needs every worker, take a rule that averages "
       "with neighbors to go on without it",
       fmt::join(dead, ", "));
}

}  // namespace fast::exchange
