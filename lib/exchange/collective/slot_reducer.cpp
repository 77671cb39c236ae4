#include "exchange/collective/slot_reducer.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>
#include <utility>

namespace fast::exchange {
namespace {

constexpr std::uint64_t input_slot = 0, result_slot = 1;

/// First element of worker w's slice: multiples of a cache line.
std::size_t slice_begin(std::size_t count, int w, int workers) {
  const std::size_t even = count * static_cast<std::size_t>(w) / static_cast<std::size_t>(workers);
  return w == workers ? count : even / cache_line_bytes * cache_line_bytes;
}

/// If nobody reports deaths, waits end for suspects.
ExchangeOptions waiting_for_all(ExchangeOptions options, const ExitReports& ends) {
  if (!ends.all) return options;
  options.has_ended = [ended = ends.all](int worker) {
    const std::vector<int> dead = ended();
    return std::find(dead.begin(), dead.end(), worker) != dead.end();
  };
  return options;
}

}  // namespace

SlotReducer::SlotReducer(const std::shared_ptr<Heartbeat>& heartbeat,
                         const ExchangeOptions& options, ExitReports ends)
    : board_(heartbeat->board()),
      rank_(heartbeat->rank()),
      peers_(heartbeat),
      waiter_(heartbeat, waiting_for_all(options, ends)),
      ends_(std::move(ends)) {}

SlotReducer::~SlotReducer() {
  if (std::uncaught_exceptions() > 0) peers_.announce(WorkerStatus::failed);
}

void SlotReducer::arrive(std::int64_t phase) {
  mixing::stream_fence();
  WorkerHeader& header = board_->header(rank_);
  header.reading.progress.store(phase, std::memory_order_release);
  header.note_progress();
  header.notify();
}

void SlotReducer::await(int worker, std::int64_t phase) {
  const auto& progress = board_->header(worker).reading.progress;
  const auto has_arrived = [&] { return progress.load(std::memory_order_acquire) >= phase; };
  const auto arrives = [&] {
    if (has_arrived()) return true;
    stop_for_failure(ends_, rank_);
    return false;
  };
  const auto outcome = waiter_.wait(worker, arrives, "all-reduce", calls_);
  if (outcome == PeerWaiter::Outcome::ready) return;
  if (ends_.all) fail_without(ends_, rank_);
  fail(ErrorKind::deadline,
       "all-reduce: worker {} cannot continue in call {} because worker {} has left; an "
       "all-reduce needs every worker",
       rank_, calls_, worker);
}

template <class T>
void SlotReducer::average_of(std::span<T> values) {
  require(values.size_bytes() <= board_->shape().vector_bytes, ErrorKind::argument,
          "all-reduce: {} bytes were given, open_reducer() was called for at most {}",
          values.size_bytes(), board_->shape().vector_bytes);
  const int workers = board_->workers();
  const std::int64_t phase = 2 * calls_++;
  mixing::stream_copy(board_->payload(rank_, input_slot).data, values.data(), values.size_bytes());
  arrive(phase + 1);

  const std::size_t begin = slice_begin(values.size(), rank_, workers);
  const std::size_t count = slice_begin(values.size(), rank_ + 1, workers) - begin;
  std::vector<const T*> inputs;
  for (int w = 0; w < workers; ++w) {
    await(w, phase + 1);
    inputs.push_back(reinterpret_cast<const T*>(board_->payload(w, input_slot).data) + begin);
  }
  const std::vector<T> weights(inputs.size(), T{1} / static_cast<T>(workers));
  T* result = reinterpret_cast<T*>(board_->payload(rank_, result_slot).data) + begin;
  mixing::weighted_sum(result, inputs, weights, count);
  arrive(phase + 2);

  for (int w = 0; w < workers; ++w) {
    await(w, phase + 2);
    const std::size_t from = slice_begin(values.size(), w, workers);
    const std::size_t to = slice_begin(values.size(), w + 1, workers);
    std::memcpy(values.data() + from,
                reinterpret_cast<const T*>(board_->payload(w, result_slot).data) + from,
                (to - from) * sizeof(T));
  }
}

}  // namespace fast::exchange
