#include "exchange/remote/messages/sending.hpp"

#include <algorithm>
#include <cstring>

#include "exchange/remote/messages/frame.hpp"
#include "mpi/implementation.hpp"

namespace fast::exchange {

FrameSender::FrameSender(RemoteEdges& edges, const mpi::Messages& messages, int reader)
    : edges_(edges), messages_(messages), reader_(reader) {
  for (Message& message : under_way_)
    message.bytes.resize(longest_frame_message(edges.board->layout()));
}

bool FrameSender::is_ready() { return under_way_[next_].request.test(); }

void FrameSender::send(Frame frame, std::span<const std::byte> payload) {
  Message& message = under_way_[next_];
  next_ = (next_ + 1) % most_under_way;
  frame.counters = PeerCounters::of(edges_.board->header(edges_.rank));
  std::memcpy(message.bytes.data(), &frame, sizeof(Frame));
  std::ranges::copy(payload, message.bytes.begin() + sizeof(Frame));
  edges_.throttle.spend(payload.size());
  message.request = messages_.send(reader_, publication_tag, message.bytes.data(),
                                   sizeof(Frame) + payload.size());
}

bool FrameSender::done() {
  return std::ranges::all_of(under_way_, [](Message& message) { return message.request.test(); });
}

namespace {
constexpr int parts_started_at_once = 4;
}

void PayloadSender::begin(std::shared_ptr<SendBuffer> buffer) {
  buffer_ = std::move(buffer);
  started_ = at_ = 0;
}

bool PayloadSender::start_parts() {
  const std::size_t before = started_;
  const std::size_t most = mpi::implementation::parts_at_a_time();
  for (int i = 0; i < parts_started_at_once && under_way_.size() < most; ++i) {
    if (all_started() || !throttle_.open()) break;
    const PayloadPart run = buffer_->part().run(at_, part_bytes);
    const std::size_t size = run.size_bytes();
    const std::byte* part = buffer_->up_to(started_ + size) + started_;
    under_way_.push_back(messages_.send_expected(reader_, publication_tag, part, size));
    throttle_.spend(size);
    started_ += size;
    at_ = run.end;
  }
  return started_ > before;
}

bool PayloadSender::remove_done() {
  return std::erase_if(under_way_, [](mpi::Request& request) { return request.test(); }) > 0;
}

bool PayloadSender::release() {
  if (!under_way_.empty()) return false;
  buffer_.reset();
  return true;
}

}  // namespace fast::exchange
