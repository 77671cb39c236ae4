// A bus inside a process: messages come late, in another order, or not at all, as it is told.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fast/core/deadline.hpp>

#include "sites/bus.hpp"

namespace fast::testing {

/// What happens to messages on their way.
struct Weather {
  double lost = 0;   ///< the share of messages that do not come
  Seconds delay{0};  ///< of each message, drawn up to this
  std::uint64_t seed = 1;
};

/// The server that all MemoryBus objects are connected to.
class MemoryHub {
 public:
  explicit MemoryHub(Weather weather = {}) : weather_(weather), random_(weather.seed) {
    thread_ = std::jthread([this](const std::stop_token& stop) { deliver(stop); });
  }
  ~MemoryHub() {
    thread_.request_stop();
    changed_.notify_all();
  }

  bool send(const std::string& from, const std::string& subject, const std::string& text) {
    const std::lock_guard lock(mutex_);
    sent_bytes_ += text.size();
    if (cut_.contains(from)) return false;
    std::uniform_real_distribution<double> unit(0, 1);
    if (unit(random_) < weather_.lost) return true;
    const auto delay = std::chrono::duration_cast<Clock::duration>(weather_.delay * unit(random_));
    queue_.push({Clock::now() + delay, number_++, subject, text});
    changed_.notify_all();
    return true;
  }
  /// As a message that is not lost. A site that is cut off still counts as a listener.
  void probe(const std::string& from, const std::string& subject, const std::string& reply) {
    const std::lock_guard lock(mutex_);
    const auto hears = [&](const auto& listener) { return matches(listener->subject, subject); };
    if (cut_.contains(from) || std::ranges::any_of(listeners_, hears)) return;
    queue_.push({Clock::now(), number_++, reply, {}});
    changed_.notify_all();
  }
  void listen(const void* bus, const std::string& site, const std::string& subject,
              sites::Bus::Handler handler) {
    const std::lock_guard lock(mutex_);
    listeners_.push_back(
        std::make_shared<Listener>(Listener{bus, site, subject, std::move(handler)}));
  }
  void forget(const void* bus) {
    const std::lock_guard handling(handling_);
    const std::lock_guard lock(mutex_);
    for (const auto& listener : listeners_)
      listener->there = listener->there && listener->bus != bus;
    std::erase_if(listeners_, [](const auto& listener) { return !listener->there; });
  }
  /// The site hears and says nothing until it is mended.
  void cut(const std::string& site) {
    const std::lock_guard lock(mutex_);
    cut_.insert(site);
  }
  void mend(const std::string& site) {
    const std::lock_guard lock(mutex_);
    cut_.erase(site);
  }
  /// What is on its way is lost.
  void drop() {
    const std::lock_guard handling(handling_);
    const std::lock_guard lock(mutex_);
    queue_ = {};
  }
  std::size_t sent_bytes() {
    const std::lock_guard lock(mutex_);
    return sent_bytes_;
  }

 private:
  struct Message {
    Clock::time_point due;
    std::uint64_t number;
    std::string subject, text;
    bool operator>(const Message& other) const {
      return std::pair(due, number) > std::pair(other.due, other.number);
    }
  };
  struct Listener {
    const void* bus;
    std::string site, subject;
    sites::Bus::Handler handler;
    bool there = true;  ///< guarded by handling_
  };

  static bool matches(const std::string& filter, const std::string& subject) {
    std::size_t f = 0, s = 0;
    while (f < filter.size() && s < subject.size()) {
      if (filter[f] == '*') {
        while (s < subject.size() && subject[s] != '.') ++s;
        ++f;
      } else if (filter[f++] != subject[s++]) {
        return false;
      }
    }
    return f == filter.size() && s == subject.size();
  }

  void deliver(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (queue_.empty()) {
        changed_.wait(lock, stop, [this] { return !queue_.empty(); });
        continue;
      }
      if (queue_.top().due > Clock::now()) {
        changed_.wait_for(lock, std::chrono::milliseconds(1));  // an earlier one may come
        continue;
      }
      const Message message = queue_.top();
      queue_.pop();
      std::vector<std::shared_ptr<Listener>> hear;
      for (const auto& listener : listeners_) {
        if (matches(listener->subject, message.subject) && !cut_.contains(listener->site))
          hear.push_back(listener);
      }
      lock.unlock();
      {
        const std::lock_guard handling(handling_);
        for (const auto& listener : hear) {
          if (listener->there) listener->handler(message.subject, message.text);
        }
      }
      lock.lock();
    }
  }

  std::mutex mutex_, handling_;
  std::condition_variable_any changed_;
  Weather weather_;
  std::mt19937_64 random_;
  std::priority_queue<Message, std::vector<Message>, std::greater<>> queue_;
  std::uint64_t number_ = 0;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::set<std::string> cut_;
  std::size_t sent_bytes_ = 0;
  std::jthread thread_;
};

class MemoryBus : public sites::Bus {
 public:
  MemoryBus(std::shared_ptr<MemoryHub> hub, std::string site)
      : hub_(std::move(hub)), site_(std::move(site)) {}
  ~MemoryBus() override { end(); }
  void require_usable() const override {}
  void end() override { hub_->forget(this); }
  bool send(const std::string& subject, const std::string& text) override {
    return hub_->send(site_, subject, text);
  }
  void probe(const std::string& subject, const std::string& reply) override {
    hub_->probe(site_, subject, reply);
  }
  void listen(const std::string& subject, Handler handler) override {
    hub_->listen(this, site_, subject, std::move(handler));
  }
  const std::string& run() const override { return run_; }

 private:
  std::shared_ptr<MemoryHub> hub_;
  std::string site_, run_ = "run";
};

}  // namespace fast::testing
