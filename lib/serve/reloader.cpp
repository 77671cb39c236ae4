#include "serve/reloader.hpp"

#include <fast/core/error.hpp>
#include <fast/core/message.hpp>

namespace fast::serve {
namespace {

/// Others, as too many open files, may pass: the next look tries again.
bool is_of_content(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known != nullptr && known->kind() != ErrorKind::resource;
}

}  // namespace

Reloader::Reloader(LogSink log, OnReload on_reload)
    : log_(std::move(log)), on_reload_(std::move(on_reload)) {}

void Reloader::add(ModelSource source, ServedModel& model, Becomes role) {
  Watched watched{std::move(source), &model, role};
  watched.read = watched.seen = watched.source.fingerprint();
  model.install(watched.source.load(), role);
  watched_.push_back(std::move(watched));
}

void Reloader::look() {
  for (Watched& watched : watched_) look_at(watched);
}

void Reloader::look_at(Watched& watched) {
  std::string found = watched.source.fingerprint();
  const bool is_new = !found.empty() && found != watched.read;
  const bool is_settled = found == watched.seen;
  watched.seen = std::move(found);
  if (is_new && is_settled) reload(watched);
}

void Reloader::reload(Watched& watched) {
  const std::string& model = watched.model->name();
  try {
    auto version = watched.source.load();
    if (watched.source.fingerprint() != watched.seen)
      return;  // written to meanwhile: the next look
    watched.read = watched.seen;
    const std::string hash = version->hash(), source = version->source();
    if (!watched.model->install(std::move(version), watched.role)) return;
    log_(LogLevel::info, fmt::format("{}: version {} from {}", model, hash, source));
    if (on_reload_) on_reload_(model, true);
  } catch (const std::exception& error) {
    if (watched.source.fingerprint() != watched.seen) return;
    const bool is_final = is_of_content(error);
    if (is_final) watched.read = watched.seen;
    if (!is_final && watched.trouble == watched.seen) return;
    watched.trouble = watched.seen;
    log_(LogLevel::warning, fmt::format("{}: {}, the version before it goes on: {}", model,
                                        is_final ? "refused" : "not read yet", message_of(error)));
    if (on_reload_ && is_final) on_reload_(model, false);
  }
}

void Reloader::start(std::chrono::milliseconds period) {
  thread_ = std::jthread([this, period](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, stop, period, [] { return false; }) && !stop.stop_requested()) {
      look();
    }
  });
}

void Reloader::stop() { thread_ = {}; }

}  // namespace fast::serve
