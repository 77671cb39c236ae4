#include "exchange/shared/slot_board.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <fast/core/error.hpp>

namespace fast {

std::size_t PayloadShape::stride_bytes() const {
  return round_up(vector_bytes, vector_bytes < page_bytes ? cache_line_bytes : page_bytes);
}

std::size_t PayloadShape::vectors_bytes() const {
  return static_cast<std::size_t>(vectors - 1) * stride_bytes() + vector_bytes;
}

}  // namespace fast

namespace fast::exchange {
namespace {

/// Vectors of worker 0 begin at multiples of this: of a page if they are long.
std::size_t boundary(const PayloadShape& shape) {
  const bool small = std::max(shape.vector_bytes, shape.weights_bytes) < page_bytes;
  return small ? cache_line_bytes : page_bytes;
}

}  // namespace

SlotLayout::SlotLayout(const PayloadShape& shape, bool keeps_copy)
    : shape_(shape),
      keeps_copy_(keeps_copy),
      spare_bytes_(boundary(shape) == page_bytes ? page_bytes : 0),
      stride_bytes_(shape.stride_bytes()),
      data_offset_(
          round_up(static_cast<std::size_t>(shape.scalars) * sizeof(double), boundary(shape))),
      message_bytes_(data_offset_ + shape.vectors_bytes()),
      weights_offset_(round_up(message_bytes_, boundary(shape)) +
                      (shape.weights_bytes > 0 ? spare_bytes_ : 0)),
      slot_bytes_(round_up(weights_offset_ + shape.weights_bytes, boundary(shape)) + spare_bytes_) {
}

SlotBoard::SlotBoard(Region region, const PayloadShape& shape, bool keeps_copy)
    : region_(std::move(region)),
      layout_(shape, keeps_copy),
      refused_(std::make_unique<std::atomic<bool>[]>(region_.parts.size())) {
  require(region_.part_bytes >= layout_.part_bytes(), ErrorKind::internal,
          "SlotBoard: a part has {} bytes, {} are required", region_.part_bytes,
          layout_.part_bytes());
}

/// What lies between the messages is never sent to other hosts. All of them have memory or none.
void SlotBoard::provide_mirror(int worker) const {
  require_mirror(worker);
  std::byte* part = region_.parts[static_cast<std::size_t>(worker)];
  for (std::uint64_t sequence = 0; sequence < slot_count; ++sequence) {
    const std::size_t offset = layout_.slot_offset(worker, sequence);
    const std::size_t begin = offset / page_bytes * page_bytes;
    const std::size_t size = round_up(offset + layout_.message_bytes(), page_bytes) - begin;
    if (mprotect(part + begin, size, PROT_READ | PROT_WRITE) == 0) continue;
    constexpr std::size_t slots = SlotLayout::header_bytes;
    mprotect(part + slots, begin - slots, PROT_NONE);
    refused_[static_cast<std::size_t>(worker)] = true;
    require_mirror(worker);
  }
}

void SlotBoard::require_mirror(int worker) const {
  require(!refused_[static_cast<std::size_t>(worker)], ErrorKind::resource,
          "Group: the system refused {} bytes of memory for what worker {} of another host sends; "
          "raise the limit (ulimit -d; vm.overcommit_ratio) or train a smaller model",
          slot_count * layout_.message_bytes(), worker);
}

std::vector<int> SlotBoard::failed() const {
  std::vector<int> failed;
  for (int worker = 0; worker < workers(); ++worker)
    if (status_of(header(worker)) == WorkerStatus::failed) failed.push_back(worker);
  return failed;
}

bool SlotBoard::has_skipped(int worker, std::int64_t round) const {
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
