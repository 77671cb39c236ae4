#include "exchange/links/flow_run.hpp"

#include <fast/core/deadline.hpp>
#include <string>
#include <thread>
#include <utility>

#include "core/leak_until_exit.hpp"

namespace fast::exchange {
namespace {

constexpr int message_tag = 4, answer_tag = 5;
constexpr auto without_pause = std::chrono::milliseconds(1);
constexpr auto idle_pause = std::chrono::microseconds(50);

}  // namespace

struct FlowRun::Side {
  int other = 0;
  std::size_t size_bytes = 0;
  char* buffer = nullptr;  ///< of the message
  char* answer = nullptr;
  mpi::Request message{}, reply{};
  int done = 0;  ///< messages that were answered
  bool is_begun = false;
  Clock::time_point began{};
};

struct FlowRun::Buffers {
  std::vector<std::string> parts;
  char* add(std::size_t size_bytes) { return parts.emplace_back(size_bytes, 'x').data(); }
};

FlowRun::FlowRun(const mpi::Messages& messages, int rank, const std::vector<Flow>& flows, int count)
    : messages_(messages), count_(count), buffers_(std::make_shared<Buffers>()) {
  buffers_->parts.reserve(4 * flows.size());  // short strings must not move
  const auto side = [&](int other, std::size_t size_bytes) {
    Side made{};
    made.other = other;
    made.size_bytes = size_bytes;
    made.buffer = buffers_->add(size_bytes);
    made.answer = buffers_->add(1);
    return made;
  };
  for (const Flow& flow : flows) {
    if (flow.from == rank) senders_.push_back(side(flow.to, flow.size_bytes));
    if (flow.to == rank) receivers_.push_back(side(flow.from, flow.size_bytes));
  }
  seconds_.resize(senders_.size() * static_cast<std::size_t>(count));
}

FlowRun::~FlowRun() {
  if (waits_for() >= 0) leak_until_exit(std::pair(buffers_, messages_));
}

bool FlowRun::run(const Deadline& deadline) {
  for (Side& side : receivers_) {
    side.message = messages_.receive(side.other, message_tag, side.buffer, side.size_bytes);
  }
  for (auto moved_at = Clock::now(); waits_for() >= 0;) {
    bool moved = false;
    for (std::size_t k = 0; k < receivers_.size(); ++k) moved = advance_receiver(k) || moved;
    for (std::size_t k = 0; k < senders_.size(); ++k) moved = advance_sender(k) || moved;
    if (moved) moved_at = Clock::now();
    if (Clock::now() - moved_at < without_pause) {
      std::this_thread::yield();
    } else {
      if (deadline.expired()) return false;
      check_wait();
      std::this_thread::sleep_for(idle_pause);
    }
  }
  return true;
}

void FlowRun::begin_message(Side& side) {
  side.reply = messages_.receive(side.other, answer_tag, side.answer, 1);
  side.began = Clock::now();
  side.message = messages_.send_expected(side.other, message_tag, side.buffer, side.size_bytes);
  side.is_begun = true;
}

/// The answer ends a message. True when something has happened.
bool FlowRun::advance_sender(std::size_t index) {
  Side& side = senders_[index];
  if (side.done == count_) return false;
  if (!side.is_begun) {
    begin_message(side);
    return true;
  }
  const bool is_sent = side.message.test();  // also lets MPI make progress
  if (!side.reply.test() || !is_sent) return false;
  const Seconds taken = Clock::now() - side.began;
  seconds_[index * static_cast<std::size_t>(count_) + static_cast<std::size_t>(side.done)] =
      taken.count();
  if (++side.done < count_) begin_message(side);
  return true;
}

/// The answer is sent when the message is there; the next message is awaited when it has left.
bool FlowRun::advance_receiver(std::size_t index) {
  Side& side = receivers_[index];
  if (side.done == count_) return false;
  if (side.is_begun) {  // the answer is on its way
    if (!side.reply.test()) return false;
    side.is_begun = false;
    if (++side.done < count_) {
      side.message = messages_.receive(side.other, message_tag, side.buffer, side.size_bytes);
    }
    return true;
  }
  if (!side.message.test()) return false;
  side.reply = messages_.send_expected(side.other, answer_tag, side.answer, 1);
  side.is_begun = true;
  return true;
}

int FlowRun::waits_for() const {
  for (const auto* sides : {&senders_, &receivers_}) {
    for (const Side& side : *sides) {
      if (side.done < count_) return side.other;
    }
  }
  return -1;
}

}  // namespace fast::exchange
