#include "fast_serve/stream_scorer.hpp"

#include <fmt/format.h>

#include <ctime>

#include "core/message.hpp"
#include "core/text.hpp"
#include "fast_serve/answer.hpp"
#include "options/value.hpp"

namespace fast::serve {
namespace {

using std::chrono::milliseconds;

/// How long a request for messages waits: the end of the program waits as long.
constexpr milliseconds fetch_wait{500};
/// After which a refusal for want of room is tried again.
constexpr milliseconds pause_if_full{20};
constexpr int full = 503;
/// Room for the lines around the headers, and for their names.
constexpr std::size_t bytes_around = 1024;
constexpr std::size_t longest_id = 256;  ///< that is repeated in an answer

Reply refused_for_headers() {
  return {.status = 400, .body = error_answer(stream::damaged_headers)};
}

/// Unlike those of a steady clock, these go on while the machine sleeps.
milliseconds since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(now.tv_sec) +
                                                  std::chrono::nanoseconds(now.tv_nsec));
}

std::string header(const stream::Message& message, const char* name) {
  const auto found = message.headers.find(name);
  return found == message.headers.end() ? std::string{} : found->second;
}

}  // namespace

std::optional<std::uint64_t> answered_message(std::string_view identity,
                                              std::string_view consumer) {
  const std::vector<std::string_view> parts = split_text(identity, '.');
  std::uint64_t number = 0;
  const bool is_own = parts.size() == 3 && parts[0] == consumer && reads(parts[1], number);
  return is_own ? std::optional(number) : std::nullopt;
}

StreamScorer::StreamScorer(Service& service, stream::Source& source, stream::Sink& sink,
                           ScoringOptions options)
    : service_(service), source_(source), sink_(sink), options_(std::move(options)) {}

StreamScorer::~StreamScorer() { end(milliseconds(0)); }

Request StreamScorer::request_of(const stream::Message& message) const {
  Request request;
  request.method = "POST";
  request.path = fmt::format("/v1/models/{}:predict", options_.model);
  request.content_type = header(message, "Content-Type");
  if (request.content_type.empty()) request.content_type = "application/json";
  request.shape = header(message, "X-Tensor-Shape");
  request.type = header(message, "X-Tensor-Type");
  for (const auto& [name, parameter] : {std::pair{"X-Tensor-Output", "output"},
                                        {"X-Normalized", "normalized"},
                                        {"X-Model-Version", "version"}}) {
    const std::string value = header(message, name);
    if (!value.empty()) request.query[parameter] = value;
  }
  request.body = message.body;
  return request;
}

/// Of the stored message: its number, and its time, since a stream that was made anew counts from 1
/// again.
std::string StreamScorer::identity_of(const stream::Message& message) const {
  return fmt::format("{}.{}.{}", options_.consumer, message.sequence, message.stored_ns);
}

/// By an earlier scorer. Acknowledges it then.
bool StreamScorer::is_answered(const stream::Message& message) {
  if (!options_.published.contains(identity_of(message))) return false;
  service_.metrics().repeated_message(options_.model);
  source_.acknowledge(message);
  return true;
}

stream::Outgoing StreamScorer::answer_of(const stream::Message& message, Reply reply) const {
  if (reply.body.size() + bytes_around > sink_.most_bytes()) {
    reply.status = 413;
    reply.content_type = "application/json";
    reply.body = error_answer(
        fmt::format("the answer has {} bytes, messages have {} at most; send fewer instances",
                    reply.body.size(), sink_.most_bytes()));
  }
  stream::Outgoing answer{options_.answers, std::move(reply.body), {}, {}};
  answer.id = identity_of(message);
  for (auto& [name, value] : reply.headers) answer.headers[name] = std::move(value);
  answer.headers["Content-Type"] = reply.content_type;
  answer.headers["X-Status"] = std::to_string(reply.status);
  answer.headers["X-Answer-To"] = std::to_string(message.sequence);
  const std::string own_id = header(message, "Nats-Msg-Id");
  if (!own_id.empty() && own_id.size() <= longest_id) answer.headers["X-Message-Id"] = own_id;
  return answer;
}

/// Requests over HTTP may have filled the batcher: that is no answer to a message, which waits.
Reply StreamScorer::settled(const Request& request, const std::function<Reply()>& first) {
  Reply reply = first();
  while (reply.status == full) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, pause_if_full, [this] { return gives_up_; })) break;
    lock.unlock();
    reply = service_.begin(request)();
  }
  return reply;
}

std::size_t StreamScorer::turn(milliseconds wait) {
  const milliseconds before = since_boot();
  std::vector<stream::Message> messages = source_.fetch(options_.batch, wait);
  const std::size_t fetched = messages.size();
  std::erase_if(messages, [this](const stream::Message& each) { return is_answered(each); });
  if (messages.empty()) return fetched;
  std::vector<Request> requests;
  std::vector<std::function<Reply()>> begun;
  for (const stream::Message& message : messages) {
    const Request& request = requests.emplace_back(request_of(message));
    begun.push_back(message.has_damaged_headers ? refused_for_headers : service_.begin(request));
  }
  std::vector<stream::Outgoing> answers;
  std::vector<const stream::Message*> answered;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Reply reply = settled(requests[i], begun[i]);
    if (reply.status == full) continue;
    service_.metrics().message(options_.model, reply.status < 400);
    answers.push_back(answer_of(messages[i], std::move(reply)));
    answered.push_back(&messages[i]);
  }
  if (answers.size() < messages.size()) left_some_ = true;
  if (answers.empty()) return fetched;
  if (options_.known_for.count() > 0 && since_boot() - before > options_.known_for + wait)
    return fetched;
  const std::vector<stream::Stored> stored = sink_.publish(answers);
  for (std::size_t i = 0; i < answered.size(); ++i) {
    if (stored[i] == stream::Stored::before) service_.metrics().repeated_message(options_.model);
    source_.acknowledge(*answered[i]);
  }
  return fetched;
}

void StreamScorer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) turn(fetch_wait);
}

void StreamScorer::start(OnFailure on_failure) {
  has_ended_ = false;
  thread_ = std::jthread([this, on_failure = std::move(on_failure)](const std::stop_token& stop) {
    std::string why;
    try {
      run(stop);
    } catch (const std::exception& error) {
      why = message_of(error);
    }
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
      left_some_ = left_some_ || !why.empty();
    }
    changed_.notify_all();
    if (!why.empty() && !stop.stop_requested()) on_failure(why);
  });
}

bool StreamScorer::end(milliseconds patience) {
  if (!thread_.joinable()) return !left_some_;
  thread_.request_stop();
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return has_ended_; })) {
      gives_up_ = true;
      changed_.notify_all();
      lock.unlock();
      service_.batcher().abandon();
      sink_.interrupt();
    }
  }
  thread_ = {};
  return !left_some_;
}

}  // namespace fast::serve
