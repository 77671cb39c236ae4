#include "exchange/collective/deaths.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fast/core/error.hpp>
#include <thread>

namespace fast::exchange {
namespace {
constexpr auto reporting = std::chrono::seconds(1);

int lowest_alive(const std::vector<int>& dead) {
  int rank = 0;
  while (std::ranges::count(dead, rank) > 0) ++rank;
  return rank;
}
}  // namespace

void fail_without(const Ended& dead, int rank) {
  std::vector<int> known = dead();
  if (known.empty()) return;
  int reporter = lowest_alive(known);
  while (rank != reporter) {
    std::this_thread::sleep_for(reporting);
    known = dead();
    const int next = lowest_alive(known);
    if (next == reporter) break;
    reporter = next;
  }
  fail(rank == reporter ? ErrorKind::deadline : ErrorKind::peer_failed,
       "all-reduce: worker {} is gone; an all-reduce needs every worker, take a rule that averages "
       "with neighbors to go on without it",
       fmt::join(known, ", "));
}

}  // namespace fast::exchange
