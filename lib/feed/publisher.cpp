#include "feed/publisher.hpp"

#include <algorithm>
#include <fast/core/error.hpp>

#include "feed/sample_message.hpp"

namespace fast::feed {
namespace {

std::size_t bytes_of(const stream::Outgoing& message) {
  constexpr std::size_t around = 64;  // lines, and the id's header
  std::size_t bytes = message.body.size() + message.id.size() + around;
  for (const auto& [name, value] : message.headers) bytes += name.size() + value.size() + 4;
  return bytes;
}

}  // namespace

Published publish(const data::Dataset& samples, stream::Sink& sink, const Publication& publication,
                  const std::function<void(const std::string& why)>& left_out) {
  require(publication.outstanding > 0, ErrorKind::argument,
          "publish: 0 outstanding messages; at least 1 is required");
  Published done;
  std::vector<stream::Outgoing> messages;
  const auto send = [&] {
    if (messages.empty()) return;
    for (const stream::Stored stored : sink.publish(messages))
      ++(stored == stream::Stored::now ? done.stored : done.repeated);
    messages.clear();
  };
  for (std::size_t i = 0; i < samples.size(); ++i) {
    try {
      messages.push_back(message_of(samples, i, publication.subject));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      ++done.left_out;
      left_out(error.what());
      continue;
    }
    messages.back().id = fmt::format("{}-{}", publication.id, i);
    const std::size_t bytes = bytes_of(messages.back());
    require(bytes <= sink.most_bytes(), ErrorKind::argument,
            "publish: sample {} needs a message of {} bytes, the server takes {}; raise its "
            "max_payload",
            i, bytes, sink.most_bytes());
    if (messages.size() == publication.outstanding) send();
  }
  send();
  return done;
}

}  // namespace fast::feed
