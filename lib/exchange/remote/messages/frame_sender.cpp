#include "exchange/remote/messages/frame_sender.hpp"

#include <algorithm>
#include <cstring>

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
  std::copy(payload.begin(), payload.end(), message.bytes.begin() + sizeof(Frame));
  edges_.throttle.spend(payload.size());
  message.request = messages_.send(reader_, publication_tag, message.bytes.data(),
                                   sizeof(Frame) + payload.size());
}

bool FrameSender::done() {
  return std::all_of(under_way_.begin(), under_way_.end(),
                     [](Message& message) { return message.request.test(); });
}

}  // namespace fast::exchange
