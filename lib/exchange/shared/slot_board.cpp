#include "exchange/shared/slot_board.hpp"

#include <algorithm>
#include <fast/core/error.hpp>

#include "exchange/shared/futex.hpp"
#include "exchange/shared/optimistic.hpp"

namespace fast {

std::size_t PayloadShape::stride_bytes() const {
  return round_up(vector_bytes, vector_bytes < page_bytes ? cache_line_bytes : page_bytes);
}

std::size_t PayloadShape::vectors_bytes() const {
  return static_cast<std::size_t>(vectors - 1) * stride_bytes() + vector_bytes;
}

std::size_t PayloadShape::payload_bytes() const {
  return static_cast<std::size_t>(vectors) * vector_bytes +
         static_cast<std::size_t>(scalars) * sizeof(double);
}

}  // namespace fast

namespace fast::exchange {
namespace {

constexpr std::size_t header_bytes = round_up(sizeof(WorkerHeader), page_bytes);
static_assert(sizeof(WorkerHeader::Publication) == cache_line_bytes);

/// Where vectors begin: on a page when they are long.
std::size_t boundary(const PayloadShape& shape) {
  const bool small = std::max(shape.vector_bytes, shape.weights_bytes) < page_bytes;
  return small ? cache_line_bytes : page_bytes;
}

}  // namespace

std::size_t SlotBoard::data_offset(const PayloadShape& shape) {
  const std::size_t head = static_cast<std::size_t>(shape.scalars) * sizeof(double);
  return round_up(head, boundary(shape));
}

std::size_t SlotBoard::message_bytes(const PayloadShape& shape) {
  return data_offset(shape) + shape.vectors_bytes();
}

std::size_t SlotBoard::weights_offset(const PayloadShape& shape) {
  return round_up(message_bytes(shape), boundary(shape));
}

std::size_t SlotBoard::slot_bytes(const PayloadShape& shape) {
  return round_up(weights_offset(shape) + shape.weights_bytes, boundary(shape));
}

std::size_t SlotBoard::slot_offset(const PayloadShape& shape, std::uint64_t sequence) {
  return header_bytes + sequence % slot_count * slot_bytes(shape);
}

void WorkerHeader::hear_of_progress(std::uint64_t activity) {
  std::uint64_t known = life.activity.load(std::memory_order_relaxed);
  while (known < activity && !life.activity.compare_exchange_weak(known, activity)) continue;
}

void WorkerHeader::ring() {
  bell.count.fetch_add(1, std::memory_order_seq_cst);
  if (bell.waiters.load(std::memory_order_seq_cst) > 0) futex_wake_all(bell.count);
}

void WorkerHeader::await_ring(std::uint32_t rung, std::chrono::nanoseconds limit) {
  bell.waiters.fetch_add(1, std::memory_order_seq_cst);
  futex_wait(bell.count, rung, limit);
  bell.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

SlotBoard::SlotBoard(Region region, const PayloadShape& shape)
    : region_(std::move(region)), shape_(shape) {
  require(region_.part_bytes >= part_bytes(shape), ErrorKind::internal,
          "SlotBoard: a part has {} bytes, {} are needed", region_.part_bytes, part_bytes(shape));
}

std::size_t SlotBoard::part_bytes(const PayloadShape& shape) {
  return header_bytes + slot_count * slot_bytes(shape);
}

std::byte* SlotBoard::slot(int worker, std::uint64_t sequence) const {
  return region_.parts[static_cast<std::size_t>(worker)] + slot_offset(shape_, sequence);
}

MutablePayload SlotBoard::payload(int worker, std::uint64_t sequence) const {
  std::byte* base = slot(worker, sequence);
  return {base + data_offset(shape_), reinterpret_cast<double*>(base), shape_.stride_bytes(),
          shape_.weights_bytes > 0 ? base + weights_offset(shape_) : nullptr};
}

bool SlotBoard::still_holds(int worker, std::uint64_t sequence, std::int64_t round) const {
  order_loads();
  const auto& newest = header(worker).publication.sequence;
  return round != being_written &&
         this->round(worker, sequence).load(std::memory_order_acquire) == round &&
         newest.load(std::memory_order_acquire) < sequence + slot_count;
}

bool SlotBoard::has_gone_past(int worker, std::int64_t round) const {
  const auto& publication = header(worker).publication;
  const std::uint64_t newest = publication.sequence.load(std::memory_order_acquire);
  for (std::uint64_t age = 0; age < slot_count && age < newest; ++age) {
    const std::int64_t first = this->round(worker, newest - age).load(std::memory_order_acquire);
    const std::int64_t last = until(worker, newest - age).load(std::memory_order_acquire);
    if (age == 0 && (first == being_written || first <= round)) return false;
    if (first != being_written && first <= round && round <= last) return false;
  }
  return newest > 0 && publication.sequence.load(std::memory_order_acquire) == newest;
}

}  // namespace fast::exchange
