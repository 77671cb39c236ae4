// The distribution of a table of runs over blocks of threads: a block takes chunk after chunk.
#pragma once

#include "combine/element_runs.hpp"
#include "cuda/device/elements.hpp"

namespace fast::cuda {

/// The run of a chunk: the last one that begins at or before it.
FAST_HOST_DEVICE const combine::ElementRun& run_of(const combine::RunTable& table,
                                                   std::uint32_t chunk) {
  if (table.runs == nullptr) return table.single;
  std::uint32_t low = 0, high = table.count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (table.runs[middle].first_chunk <= chunk)
      low = middle;
    else
      high = middle;
  }
  return table.runs[low];
}

/// The part of thread `thread` of `threads` of a chunk, in packs of Width where the run's memory is
/// aligned to these.
template <int Width, class Elements>
FAST_HOST_DEVICE void run_chunk(const Elements& elements, const combine::RunTable& table,
                                std::uint32_t chunk, std::size_t thread, std::size_t threads) {
  const combine::ElementRun run = run_of(table, chunk);
  const std::size_t begin = std::size_t{chunk - run.first_chunk} * combine::chunk_elements;
  const std::size_t left = run.count - begin;
  const std::size_t count = left < combine::chunk_elements ? left : combine::chunk_elements;
  const auto one = [&](std::size_t e) { elements.template at<1>(run, begin + e); };
  if constexpr (Width > 1) {
    const auto pack = [&](std::size_t e) { elements.template at<Width>(run, begin + e); };
    if (elements.template is_aligned<Width>(run))
      return for_share<Width>(thread, threads, count, pack, one);
  }
  for_share<1>(thread, threads, count, one, one);
}

}  // namespace fast::cuda
