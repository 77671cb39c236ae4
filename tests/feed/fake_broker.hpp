// A stream in memory, in place of a server.
#pragma once

#include <fast/core/error.hpp>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "stream/broker.hpp"

namespace fast::testing {

/// What the server holds. Threads may share it.
struct FakeServer {
  std::mutex mutex;
  std::map<std::uint64_t, stream::Message> messages;
  std::uint64_t last = 0;
  std::set<std::string> ids;
  std::string identity = "one";
  std::size_t most_at_once = 0, most_bytes = 1 << 20;

  void add(stream::Outgoing message) {
    const std::lock_guard lock(mutex);
    ++last;
    messages[last] = {message.subject, std::move(message.body), std::move(message.headers), last};
  }
  void remove(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    messages.erase(number);
  }
};

class FakeReader final : public stream::Reader {
 public:
  explicit FakeReader(FakeServer& server) : server_(server) {}
  std::string identity() override { return server_.identity; }
  stream::Extent extent() override {
    const std::lock_guard lock(server_.mutex);
    if (server_.messages.empty()) return {server_.last + 1, server_.last + 1};
    return {server_.messages.begin()->first, server_.last + 1};
  }
  std::vector<stream::Message> read(std::uint64_t begin, std::size_t count) override {
    const std::lock_guard lock(server_.mutex);
    std::vector<stream::Message> found;
    for (auto at = server_.messages.lower_bound(begin);
         at != server_.messages.end() && at->first < begin + count; ++at)
      found.push_back(at->second);
    return found;
  }
  void interrupt() override {}

 private:
  FakeServer& server_;
};

class FakeSink final : public stream::Sink {
 public:
  explicit FakeSink(FakeServer& server) : server_(server) {}
  std::vector<stream::Stored> publish(std::span<const stream::Outgoing> messages) override {
    server_.most_at_once = std::max(server_.most_at_once, messages.size());
    std::vector<stream::Stored> stored;
    for (const stream::Outgoing& message : messages) {
      const bool is_new = server_.ids.insert(message.id).second;
      if (is_new) server_.add(message);
      stored.push_back(is_new ? stream::Stored::now : stream::Stored::before);
    }
    return stored;
  }
  void interrupt() override {}
  std::size_t most_bytes() const override { return server_.most_bytes; }

 private:
  FakeServer& server_;
};

class FakeBroker final : public stream::Broker {
 public:
  explicit FakeBroker(FakeServer& server) : server_(server) {}
  std::unique_ptr<stream::Source> source(const stream::SourceOptions&) override {
    fail(ErrorKind::argument, "there are no consumers here");
  }
  std::unique_ptr<stream::Reader> reader(const std::string&) override {
    return std::make_unique<FakeReader>(server_);
  }
  std::unique_ptr<stream::Sink> sink(const std::string&) override {
    return std::make_unique<FakeSink>(server_);
  }
  std::set<std::string> latest_ids(const std::string&, std::size_t, const IsWanted&) override {
    return {};
  }
  std::chrono::milliseconds duplicate_window(const std::string&) override { return {}; }

 private:
  FakeServer& server_;
};

}  // namespace fast::testing
