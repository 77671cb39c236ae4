#include "exchange/shared/slot_board.hpp"

#include <fast/core/error.hpp>

namespace fast::exchange {

SlotBoard::SlotBoard(Region region, const PayloadShape& shape, bool keeps_copy)
    : region_(std::move(region)), layout_(shape, keeps_copy) {
  require(region_.part_bytes >= layout_.part_bytes(), ErrorKind::internal,
          "SlotBoard: a part has {} bytes, {} are required", region_.part_bytes,
          layout_.part_bytes());
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
