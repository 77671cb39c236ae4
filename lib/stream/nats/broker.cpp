#include <algorithm>
#include <fast/core/error.hpp>
#include <future>

#include "core/message.hpp"
#include "stream/nats/connection.hpp"

namespace fast::stream {
namespace {

constexpr std::size_t most_ids = 10'000;
/// Messages that are asked for at the same time.
constexpr std::uint64_t asked_at_once = 32;

class NatsBroker final : public Broker {
 public:
  NatsBroker(const Address& address, const BrokerOptions& options)
      : connection_(std::make_shared<Connection>(address, options)),
        context_(context_of(*connection_)) {}

  std::unique_ptr<Source> source(const SourceOptions& options) override {
    return make_source(connection_, stream_of(options.subject), options);
  }

  std::unique_ptr<Reader> reader(const std::string& subject) override {
    return make_reader(connection_, stream_of(subject), subject);
  }

  std::unique_ptr<Sink> sink(const std::string& subject) override {
    const StreamInfoHandle info = info_of(stream_of(subject));
    return make_sink(connection_, info->Config->MaxMsgSize);
  }

  std::set<std::string> latest_ids(const std::string& subject, std::size_t others,
                                   const IsWanted& is_wanted) override {
    const std::string stream = stream_of(subject);
    const auto [first, last] = [&] {
      const StreamInfoHandle info = info_of(stream);
      return std::pair(info->State.FirstSeq, info->State.LastSeq);
    }();
    std::set<std::string> ids;
    std::size_t in_a_row = 0;
    const std::uint64_t begin = std::max<std::uint64_t>(first, 1);
    for (std::uint64_t end = last + 1; end > begin;) {
      const std::uint64_t count = std::min(asked_at_once, end - begin);
      for (std::string& id : ids_before(stream, end, count)) {
        if (in_a_row == others || ids.size() == most_ids) return ids;
        const bool wanted = is_wanted(id);
        in_a_row = wanted ? 0 : in_a_row + 1;
        if (wanted) ids.insert(std::move(id));
      }
      end -= count;
    }
    return ids;
  }

  std::chrono::milliseconds duplicate_window(const std::string& subject) override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::nanoseconds(info_of(stream_of(subject))->Config->Duplicates));
  }

 private:
  /// Of messages [end - count, end), the last one first. The server gives one message for a
  /// request.
  std::vector<std::string> ids_before(const std::string& stream, std::uint64_t end,
                                      std::uint64_t count) const {
    std::vector<std::future<std::string>> asked;
    for (std::uint64_t number = end; number-- > end - count;) {
      asked.push_back(std::async(std::launch::async,
                                 [this, &stream, number] { return id_of(stream, number); }));
    }
    std::vector<std::string> ids;
    ids.reserve(asked.size());
    for (auto& each : asked) ids.push_back(each.get());
    return ids;
  }

  /// Empty: the message has none, or was removed.
  std::string id_of(const std::string& stream, std::uint64_t number) const {
    natsMsg* found = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_GetMsg(&found, context_.get(), stream.c_str(), number, nullptr, &code);
    const MessageHandle owned(found);
    if (status == NATS_NOT_FOUND) return {};
    check(status, code);
    const char* id = nullptr;
    return natsMsgHeader_Get(found, "Nats-Msg-Id", &id) == NATS_OK ? id : "";
  }

  StreamInfoHandle info_of(const std::string& stream) const {
    jsStreamInfo* found = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_GetStreamInfo(&found, context_.get(), stream.c_str(), nullptr, &code);
    StreamInfoHandle owned(found);
    check(status, code);
    return owned;
  }

  void check(natsStatus status, jsErrCode code) const {
    const bool is_without = status == NATS_NO_RESPONDERS || code == JSNotEnabledErr ||
                            code == JSNotEnabledForAccountErr;
    require(!is_without, ErrorKind::resource,
            "{}: the server keeps no streams; start it with JetStream (nats-server -js)",
            connection_->shown());
    require(status == NATS_OK, ErrorKind::resource, "{}: {}", connection_->shown(),
            printable(text_of(status)));
  }

  /// The name of the stream that has the subject.
  std::string stream_of(const std::string& subject) const {
    jsOptions with;
    jsOptions_Init(&with);
    with.Stream.Info.SubjectsFilter = subject.c_str();
    jsStreamNamesList* found = nullptr;
    jsErrCode code{};
    const natsStatus status = js_StreamNames(&found, context_.get(), &with, &code);
    const NamesHandle owned(found);
    if (status != NATS_NOT_FOUND) check(status, code);
    require(found != nullptr && found->Count > 0, ErrorKind::argument,
            "{}: no stream has the subject {}; make one (nats stream add)", connection_->shown(),
            printable(subject));
    if (found->Count > 1) {
      fail(ErrorKind::argument,
           "{}: {} streams have the subject {} ({}, {}, ...); choose a subject of one stream",
           connection_->shown(), found->Count, printable(subject), printable(found->List[0]),
           printable(found->List[1]));
    }
    return found->List[0];
  }

  std::shared_ptr<Connection> connection_;
  ContextHandle context_;
};

}  // namespace

std::unique_ptr<Broker> connect(const Address& address, const BrokerOptions& options) {
  return std::make_unique<NatsBroker>(address, options);
}

}  // namespace fast::stream
