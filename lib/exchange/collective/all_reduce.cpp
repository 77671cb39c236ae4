#include "exchange/collective/all_reduce.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/mixing/kernels.hpp>
#include <utility>

#include "core/contains.hpp"
#include "core/waits.hpp"

namespace fast::exchange {
namespace {

constexpr auto ask_again = std::chrono::milliseconds(20);

/// Whether this worker is the one that reports.
bool reports(const ExitReports& ends, int rank, Seconds patience) {
  const Deadline waiting(without_limit);
  bool is_reported = false;
  const auto is_known = [&] {
    is_reported = !ends.failed().empty();
    const double turn_s = living_below(rank, ends.all()) * patience.count();
    return is_reported || waiting.elapsed_s() >= turn_s;
  };
  look_until(is_known, waiting, ask_again);
  return !is_reported;
}

/// First element of worker w's slice: multiples of a cache line.
std::size_t slice_begin(std::size_t count, int w, int workers) {
  const std::size_t even = count * static_cast<std::size_t>(w) / static_cast<std::size_t>(workers);
  return w == workers ? count : even / cache_line_bytes * cache_line_bytes;
}

/// If nobody reports deaths, waits end for suspects.
ExchangeOptions waiting_for_all(ExchangeOptions options, const ExitReports& ends) {
  if (ends.all)
    options.has_ended = [ended = ends.all](int worker) { return contains(ended(), worker); };
  return options;
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

void ReducerLink::announce_failure() const {
  if (is_own && std::uncaught_exceptions() > 0) peers->announce(WorkerStatus::failed);
}

/// A cache line for the phase, the input and the result.
std::size_t SlotReducer::part_bytes(std::size_t size_bytes) {
  return cache_line_bytes + 2 * round_up(size_bytes, cache_line_bytes);
}

SlotReducer::SlotReducer(Region memory, std::size_t size_bytes, ReducerLink link,
                         const ExchangeOptions& options)
    : memory_(std::move(memory)),
      size_bytes_(size_bytes),
      link_(std::move(link)),
      rank_(link_.rank()),
      waiter_(link_.peers->heartbeat(), waiting_for_all(options, link_.ends)) {}

std::atomic<std::int64_t>& SlotReducer::phase(int worker) const {
  return *reinterpret_cast<std::atomic<std::int64_t>*>(
      memory_.parts[static_cast<std::size_t>(worker)]);
}

std::byte* SlotReducer::input(int worker) const {
  return memory_.parts[static_cast<std::size_t>(worker)] + cache_line_bytes;
}

std::byte* SlotReducer::result(int worker) const {
  return input(worker) + round_up(size_bytes_, cache_line_bytes);
}

/// Those that wait sleep on this worker's header.
void SlotReducer::arrive(std::int64_t now) {
  mixing::stream_fence();
  phase(rank_).store(now, std::memory_order_release);
  WorkerHeader& header = link_.peers->heartbeat()->board()->header(rank_);
  header.note_progress();
  header.notify();
}

void SlotReducer::await(int worker, std::int64_t wanted) {
  const auto arrives = [&] {
    if (phase(worker).load(std::memory_order_acquire) >= wanted) return true;
    stop_for_failure(link_.ends, rank_);
    return false;
  };
  const auto outcome = waiter_.wait(worker, arrives, "all-reduce", calls_);
  if (outcome == PeerWaiter::Outcome::ready) return;
  if (link_.ends.all) fail_without(link_.ends, rank_);
  fail(ErrorKind::deadline,
       "all-reduce: worker {} cannot continue in call {} because worker {} has left; an "
       "all-reduce needs every worker",
       rank_, calls_, worker);
}

template <class T>
void SlotReducer::average_of(std::span<T> values) {
  require(values.size_bytes() <= size_bytes_, ErrorKind::argument,
          "all-reduce: {} bytes were given, open_reducer() was called for at most {}",
          values.size_bytes(), size_bytes_);
  const auto workers = static_cast<int>(memory_.parts.size());
  const std::int64_t before = 2 * calls_++;
  mixing::stream_copy(input(rank_), values.data(), values.size_bytes());
  arrive(before + 1);

  const std::size_t begin = slice_begin(values.size(), rank_, workers);
  const std::size_t count = slice_begin(values.size(), rank_ + 1, workers) - begin;
  std::vector<const T*> inputs;
  for (int w = 0; w < workers; ++w) {
    await(w, before + 1);
    inputs.push_back(reinterpret_cast<const T*>(input(w)) + begin);
  }
  const std::vector<T> weights(inputs.size(), T{1} / static_cast<T>(workers));
  mixing::weighted_sum(reinterpret_cast<T*>(result(rank_)) + begin, inputs, weights, count);
  arrive(before + 2);

  for (int w = 0; w < workers; ++w) {
    await(w, before + 2);
    const std::size_t from = slice_begin(values.size(), w, workers);
    const std::size_t to = slice_begin(values.size(), w + 1, workers);
    std::memcpy(values.data() + from, reinterpret_cast<const T*>(result(w)) + from,
                (to - from) * sizeof(T));
  }
}

template void SlotReducer::average_of(std::span<float>);
template void SlotReducer::average_of(std::span<double>);

}  // namespace fast::exchange
