#include "exchange/mpi_notes.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <thread>

#include "core/keep.hpp"
#include "mpi/impl.hpp"

namespace fast::exchange {
namespace {

constexpr int tag = 0;
constexpr Seconds last_moment{1};

}  // namespace

MpiNotes::MpiNotes(const mpi::Communicator& communicator, std::size_t size_bytes,
                   const Deadline& deadline)
    : messages_(communicator, deadline),
      size_bytes_(size_bytes),
      sent_(static_cast<std::size_t>(communicator.size())),
      coming_(std::make_shared<UnderWay>()) {
  coming_->bytes.resize(size_bytes);
}

MpiNotes::~MpiNotes() {
  for (const Deadline deadline(last_moment); !all_idle() && !deadline.expired();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const auto& note : sent_) {
    if (note && !is_idle(*note)) keep_for_good(note);
  }
  if (!is_idle(*coming_)) keep_for_good(coming_);
}

bool MpiNotes::is_idle(UnderWay& note) {
  if (note.lost) return false;
  try {
    return mpi::done(note.request);
  } catch (const Error&) {
    note.lost = true;
    return false;
  }
}

bool MpiNotes::all_idle() {
  return std::all_of(sent_.begin(), sent_.end(),
                     [](const auto& note) { return !note || note->lost || is_idle(*note); });
}

bool MpiNotes::send(int worker, std::span<const std::byte> note) {
  auto& under_way = sent_[static_cast<std::size_t>(worker)];
  if (!under_way) under_way = std::make_shared<UnderWay>();
  if (!is_idle(*under_way)) return false;
  under_way->bytes.assign(note.begin(), note.end());
  try {
    under_way->request = messages_.send(worker, tag, under_way->bytes.data(), size_bytes_);
  } catch (const Error&) {
    under_way->lost = true;
  }
  return !under_way->lost;
}

bool MpiNotes::receive(std::span<std::byte> note) {
  const bool begins = coming_->request == MPI_REQUEST_NULL && !coming_->lost;
  if (begins) {
    const auto sender = messages_.unasked();
    if (!sender) return false;
    coming_->request = messages_.receive(*sender, tag, coming_->bytes.data(), size_bytes_);
  }
  if (!is_idle(*coming_)) {
    if (!coming_->lost) return false;
    keep_for_good(coming_);  // its sender died in its middle
    coming_ = std::make_shared<UnderWay>();
    coming_->bytes.resize(size_bytes_);
    return false;
  }
  std::copy(coming_->bytes.begin(), coming_->bytes.end(), note.begin());
  return true;
}

}  // namespace fast::exchange
