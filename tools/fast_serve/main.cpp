// fast-serve: answers requests with trained models.
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/core/version.hpp>
#include <future>
#include <mutex>
#include <optional>

#include "cli/exit_status.hpp"
#include "core/contains.hpp"
#include "core/message.hpp"
#include "fast_serve/http_server.hpp"
#include "fast_serve/model_source.hpp"
#include "fast_serve/options.hpp"
#include "fast_serve/service.hpp"

namespace {

using namespace fast;
using fast_serve::milliseconds_of, fast_serve::Options;

/// What ends the program: a signal, or a part of it that fails.
class EndOfProgram {
 public:
  /// Before there is a thread: signals are taken by wait(), not by a thread that answers.
  static void block_signals() {
    const sigset_t all = signals();
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }

  /// From any thread. The first reason counts.
  void fail(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (!waits_ || !failure_.empty()) return;
      failure_ = why;
    }
    kill(getpid(), failed);
  }

  /// Waits; returns why: a signal's name, or an error.
  std::string wait() {
    const sigset_t all = signals();
    int signal = 0;
    while (sigwait(&all, &signal) != 0) {
    }
    const std::lock_guard lock(mutex_);
    waits_ = false;
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);  // a second signal ends the program at once
    if (!failure_.empty()) return failure_;
    return signal == SIGINT ? "SIGINT" : "SIGTERM";
  }

  bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return !failure_.empty();
  }

 private:
  static constexpr int failed = SIGUSR1;
  static sigset_t signals() {
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : {SIGTERM, SIGINT, failed}) sigaddset(&all, signal);
    return all;
  }

  mutable std::mutex mutex_;
  std::string failure_;
  bool waits_ = true;
};

/// A line that cannot be written, as on a full disk, is no reason to end.
void log(LogLevel, std::string_view text) { fast::say("fast-serve: {}\n", printable(text)); }

void add_models(const Options& o, serve::Service& service, serve::Reloader& reloader) {
  const auto splits = fast_serve::splits(o);
  for (const fast_serve::NamedPath& each : o.models) {
    const auto split = std::ranges::find_if(
        splits, [&](const serve::Split& other) { return other.model == each.name; });
    const bool is_first = service.find(each.name) == nullptr;
    const bool has_two = std::ranges::count_if(o.models, [&](const auto& other) {
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

void report_models(const Options& o, const serve::Service& service) {
  std::vector<std::string> told;
  for (const fast_serve::NamedPath& each : o.models) {
    if (contains(told, each.name)) continue;
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

/// The connection to a stream's server, and what answers its messages.
class Scoring {
 public:
  Scoring(const Options& o, const fast_serve::StreamPlan& plan, serve::Service& service)
      : broker_(stream::connect(plan.address,
                                {"fast-serve", milliseconds_of(o.stream_patience_s), log})),
        source_(broker_->source(plan.source)),
        sink_(broker_->sink(o.answers)),
        scorer_(service, *source_, *sink_, with_published(plan)) {
    for (const std::string& notice : plan.address.notices) log(LogLevel::warning, notice);
    const auto window = broker_->duplicate_window(o.answers);
    const auto longest =
        std::max(2 * plan.source.acknowledge_within,
                 plan.source.acknowledge_within + milliseconds_of(o.stream_patience_s));
    if (window < longest) {
      log(LogLevel::warning,
          fmt::format("the stream of {} keeps identities for {:g} s: answers of messages that are "
                      "delivered again may be doubled; raise its duplicate window above {:g} s "
                      "(nats stream edit --dupe-window)",
                      o.answers, std::chrono::duration<double>(window).count(),
                      std::chrono::duration<double>(longest).count()));
    }
  }

  serve::StreamScorer& scorer() { return scorer_; }

 private:
  /// The answers of messages that the server may deliver again. A server that was killed has
  /// forgotten its latest acknowledgments. Each answer is a message that it sends whole.
  serve::ScoringOptions with_published(const fast_serve::StreamPlan& plan) const {
    serve::ScoringOptions scoring = plan.scoring;
    const auto is_open = [&](std::string_view identity) {
      const auto number = serve::answered_message(identity, scoring.consumer);
      return number && *number > source_->acknowledged_before();
    };
    scoring.known_for = broker_->duplicate_window(scoring.answers);
    scoring.published = broker_->latest_ids(scoring.answers, 2 * scoring.batch, is_open);
    return scoring;
  }

  std::unique_ptr<stream::Broker> broker_;
  std::unique_ptr<stream::Source> source_;
  std::unique_ptr<stream::Sink> sink_;
  serve::StreamScorer scorer_;  // last: it ends before what it uses
};

/// The exit status. Requests and messages end at the same time, each within the grace.
int end(const Options& o, serve::Service& service, serve::HttpServer& server, Scoring* scoring) {
  const auto grace = milliseconds_of(o.grace_s);
  std::future<int> cut_off = std::async(std::launch::async, [&] {
    return server.end(grace, [&service] { service.batcher().abandon(); });
  });
  const bool all_answered = scoring == nullptr || scoring->scorer().end(grace);
  const int cut = cut_off.get();
  if (!all_answered) {
    log(LogLevel::warning,
        "messages of the stream are not answered; the server delivers them again");
  }
  if (cut > 0) {
    log(LogLevel::warning,
        fmt::format("{} connections were cut off after {} s (--grace)", cut, o.grace_s));
  }
  return cut == 0 && all_answered ? 0 : 1;
}

int serve_models(const Options& o) {
  EndOfProgram end_of_program;
  serve::Service service({o.max_instances}, {o.max_batch, o.max_delay, o.threads});
  serve::Reloader reloader(log, [&service](const std::string& model, bool installed) {
    service.metrics().reload(model, installed);
  });
  add_models(o, service, reloader);
  std::optional<Scoring> scoring;
  if (const auto plan = fast_serve::stream_plan(o)) scoring.emplace(o, *plan, service);
  serve::HttpServer server(http_options(o), [&service](const serve::Request& request) {
    return service.answer(request);
  });
  server.start([&] { end_of_program.fail("connections can be accepted no more"); });
  reloader.start(milliseconds_of(o.poll_s));
  report_models(o, service);
  if (scoring) {
    scoring->scorer().start([&](const std::string& why) { end_of_program.fail(why); });
    fmt::print("answers messages of {} to {}\n", o.subject, o.answers);
  }
  const bool is_v6 = o.listen.find(':') != std::string::npos;
  fmt::print("listening on http://{}:{}\n", is_v6 ? "[" + o.listen + "]" : o.listen, server.port());
  std::fflush(stdout);
  const std::string why = end_of_program.wait();
  log(LogLevel::info, fmt::format("{}: answers what it has accepted, then ends", why));
  service.announce_end();
  reloader.stop();
  const int status = end(o, service, server, scoring ? &*scoring : nullptr);
  return end_of_program.has_failed() ? 1 : status;
}

/// Bodies and tensors of all requests take the same memory again. Otherwise each of them would be
/// new pages of the system, which cost as much as reading the body.
void keep_freed_memory() {
  constexpr int most_bytes = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, most_bytes);
  mallopt(M_TRIM_THRESHOLD, 2 * most_bytes);
  mallopt(M_ARENA_MAX, 2);  // each keeps that much
}

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

int run(int argc, char** argv) {
  if (const auto page = tools::requested_page(fast_serve::command_line, argc, argv))
    return print(*page), 0;
  const Options o = fast_serve::read_options(argc, argv);
  if (o.help) return print(tools::help_text(fast_serve::command_line(), "fast-serve")), 0;
  if (o.help_markdown) return print(tools::program_markdown(fast_serve::command_line())), 0;
  if (o.version) return fmt::print("fast-serve {}\n", version()), 0;
  return serve_models(o);
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-serve", [&] {
    EndOfProgram::block_signals();
    keep_freed_memory();
    return run(argc, argv);
  });
}
