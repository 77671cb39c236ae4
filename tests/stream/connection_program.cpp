// A connection that a test uses by lines of text, on standard input and output.
//
//   connection_program ADDRESS [PING_INTERVAL_MS [INBOX_PREFIX]]
//
// listen SUBJECT | answer SUBJECT | send SUBJECT TEXT | request SUBJECT TEXT | again COUNT | quit
#include <nats/nats.h>

#include <cstdio>
#include <fast/core/error.hpp>
#include <iostream>
#include <sstream>
#include <string>

#include "stream/nats/connection.hpp"

namespace {

using namespace fast;

void say_line(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void on_message(natsConnection* connection, natsSubscription*, natsMsg* message, void* answers) {
  const stream::MessageHandle held(message);
  say_line(fmt::format("got {} {}", natsMsg_GetSubject(message), natsMsg_GetData(message)));
  if (answers != nullptr && natsMsg_GetReply(message) != nullptr)
    natsConnection_PublishString(connection, natsMsg_GetReply(message), "answer");
}

std::string request(natsConnection* connection, const std::string& subject,
                    const std::string& text) {
  natsMsg* answer = nullptr;
  const natsStatus status =
      natsConnection_RequestString(&answer, connection, subject.c_str(), text.c_str(), 2000);
  const stream::MessageHandle held(answer);
  return status == NATS_OK ? natsMsg_GetData(answer) : stream::text_of(status);
}

void serve(const stream::Connection& connection, const stream::Address& address) {
  natsConnection* handle = connection.handle();
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, subject, text;
    words >> verb >> subject >> std::ws;
    std::getline(words, text);
    if (verb == "quit") return;
    if (verb == "listen" || verb == "answer") {
      natsSubscription* made = nullptr;
      natsConnection_Subscribe(&made, handle, subject.c_str(), on_message,
                               verb == "answer" ? handle : nullptr);
    } else if (verb == "send") {
      natsConnection_PublishString(handle, subject.c_str(), text.c_str());
    } else if (verb == "request") {
      say_line("answered " + request(handle, subject, text));
    } else if (verb == "again") {
      for (int i = std::stoi(subject); i > 0; --i) const stream::Connection one(address, {});
    }
    natsConnection_FlushTimeout(handle, 2000);
    say_line("done " + line);
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    stream::BrokerOptions options{.name = "connection_program"};
    options.log = [](LogLevel, std::string_view text) { say_line("log " + std::string(text)); };
    if (count > 2) options.ping_interval = std::chrono::milliseconds(std::stoi(words[2]));
    if (count > 3) options.inbox_prefix = words[3];
    const stream::Address address = stream::read_address(words[1], "address");
    for (const std::string& notice : address.notices) say_line("notice " + notice);
    const stream::Connection connection(address, options);
    char url[256] = "";
    natsConnection_GetConnectedUrl(connection.handle(), url, sizeof url);
    say_line(std::string("up ") + url);
    serve(connection, address);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.kind() == ErrorKind::argument ? 2 : 1;
  }
}
