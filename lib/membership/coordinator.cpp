#include "membership/coordinator.hpp"

#include <fast/core/deadline.hpp>
#include <thread>
#include <utility>

namespace fast::membership {
namespace {

constexpr auto look_again = std::chrono::milliseconds(100);
constexpr Seconds news_between_hosts{1};

}  // namespace

Coordinator::Coordinator(Reach reach, const RecordBoard::Format& format)
    : reach_(std::move(reach)),
      board_(reach_.parts, reach_.rank, format),
      gossip_(board_, reach_.hosts, std::move(reach_.datagrams)),
      liveness_(board_, word::beat) {}

void Coordinator::start() {
  thread_.emplace([this](Seconds elapsed) { return tick(elapsed); });
}

bool Coordinator::tick(Seconds elapsed) {
  const std::lock_guard protocols(protocols_mutex_);
  for (Protocol* protocol : protocols_) protocol->listen();
  while (gossip_.receive()) {
    const std::lock_guard lock(mutex_);
    gossip_.take_over(board_);
  }
  const std::vector<int> died = this->died();
  bool is_busy = false;
  {
    const std::lock_guard lock(mutex_);
    board_.count(word::beat);
    liveness_.look(elapsed.count(), died);
    for (Protocol* protocol : protocols_) protocol->advance();
    for (const Protocol* protocol : protocols_) is_busy |= protocol->is_busy();
    gossip_.note(board_);
  }
  ticked_.notify_all();
  gossip_.send();
  return is_busy;
}

void Coordinator::add(Protocol& protocol) {
  const std::lock_guard protocols(protocols_mutex_);
  protocols_.push_back(&protocol);
}

void Coordinator::remove(Protocol& protocol) {
  const std::lock_guard protocols(protocols_mutex_);
  std::erase(protocols_, &protocol);
}

void Coordinator::wait(std::unique_lock<std::mutex>& lock) const {
  check_wait(lock);
  ticked_.wait_for(lock, look_again);
}

Seconds Coordinator::news() const {
  return gossip_.has_other_hosts() ? news_between_hosts : Seconds(0);
}

void Coordinator::spread_news() const { std::this_thread::sleep_for(news()); }

}  // namespace fast::membership
