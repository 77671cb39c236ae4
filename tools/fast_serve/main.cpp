// fast-serve: answers requests with trained models.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/core/version.hpp>

#include "fast_serve/options.hpp"
#include "serve/http_server.hpp"
#include "serve/reloader.hpp"
#include "serve/service.hpp"

namespace {

using namespace fast;
using fast_serve::Options;

/// The signals that end the program are taken by wait_for_end(), not by a thread that answers.
sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  return signals;
}

/// The signal's name.
const char* wait_for_end() {
  const sigset_t signals = ending_signals();
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second one ends the program at once
  return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

void log(LogLevel, std::string_view text) {
  fmt::print(stderr, "fast-serve: {}\n", printable(text));
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, 1e6) * 1000));
}

void add_models(const Options& o, serve::Service& service, serve::Reloader& reloader) {
  const auto splits = fast_serve::splits(o);
  for (const fast_serve::NamedPath& each : o.models) {
    const auto split = std::find_if(splits.begin(), splits.end(), [&](const serve::Split& other) {
      return other.model == each.name;
    });
    const bool is_first = service.find(each.name) == nullptr;
    const bool has_two = std::count_if(o.models.begin(), o.models.end(), [&](const auto& other) {
                           return other.name == each.name;
                         }) == 2;
    const auto share = split == splits.end() ? std::nullopt : std::optional(split->new_share);
    serve::ServedModel& model = is_first ? service.add(each.name, share) : *service.find(each.name);
    const serve::Becomes role = !has_two   ? serve::Becomes::newest
                                : is_first ? serve::Becomes::old_one
                                           : serve::Becomes::new_one;
    reloader.add(serve::ModelSource(each.path, fast_serve::assumed_note(o)), model, role);
  }
}

void tell_models(const Options& o, const serve::Service& service) {
  std::vector<std::string> told;
  for (const fast_serve::NamedPath& each : o.models) {
    if (std::find(told.begin(), told.end(), each.name) != told.end()) continue;
    told.push_back(each.name);
    for (const serve::Standing& standing : service.find(each.name)->standings()) {
      const serve::ModelVersion& version = *standing.version;
      fmt::print("{}: {}, samples of the shape {}, version {} from {}{}\n", each.name,
                 version.spec().name, nn::describe(version.sample()), version.hash(),
                 printable(version.source()),
                 version.normalizing() ? "" : "; values are taken as they are");
    }
  }
}

serve::HttpOptions http_options(const Options& o) {
  serve::HttpOptions http;
  http.address = o.listen;
  http.port = o.port;
  http.most_request_bytes = o.max_request_bytes;
  http.connections = o.connections;
  return http;
}

int serve_models(const Options& o) {
  serve::Service service({o.max_instances}, {o.max_batch, o.max_delay, o.threads});
  serve::Reloader reloader(log, [&service](const std::string& model, bool installed) {
    service.metrics().reload(model, installed);
  });
  add_models(o, service, reloader);
  serve::HttpServer server(http_options(o), [&service](const serve::Request& request) {
    return service.answer(request);
  });
  server.start();
  reloader.start(milliseconds_of(o.poll_s));
  tell_models(o, service);
  const bool is_v6 = o.listen.find(':') != std::string::npos;
  fmt::print("listening on http://{}:{}\n", is_v6 ? "[" + o.listen + "]" : o.listen, server.port());
  std::fflush(stdout);
  const char* signal = wait_for_end();
  log(LogLevel::info, fmt::format("{}: answers what it has accepted, then ends", signal));
  service.announce_end();
  reloader.stop();
  const int cut = server.end(milliseconds_of(o.grace_s));
  if (cut == 0) return 0;
  log(LogLevel::warning,
      fmt::format("{} connections were cut off after {} s (--grace)", cut, o.grace_s));
  return 1;
}

int run(int argc, char** argv) {
  if (const auto page = tools::requested_page(fast_serve::command_line, argc, argv))
    return std::fputs(page->c_str(), stdout), 0;
  const Options o = fast_serve::read_options(argc, argv);
  if (o.help) return std::fputs(fast_serve::help().c_str(), stdout), 0;
  if (o.help_markdown) return std::fputs(fast_serve::markdown().c_str(), stdout), 0;
  if (o.version) return fmt::print("fast-serve {}\n", version()), 0;
  return serve_models(o);
}

}  // namespace

int main(int argc, char** argv) try {
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before there is a thread
  return run(argc, argv);
} catch (const std::exception& error) {
  const std::string text = message_of(error);
  fmt::print(stderr, "{}{}\n", text.starts_with("fast-serve: ") ? "" : "fast-serve: ", text);
  return 1;
}
