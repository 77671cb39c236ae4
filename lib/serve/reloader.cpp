#include "serve/reloader.hpp"

#include <fast/core/error.hpp>
#include <fast/core/message.hpp>

namespace fast::serve {

Reloader::Reloader(LogSink log, OnReload on_reload)
    : log_(std::move(log)), on_reload_(std::move(on_reload)) {}

void Reloader::add(ModelSource source, ServedModel& model, Becomes role) {
  Place place{std::move(source), &model, role};
  place.read = place.seen = place.source.fingerprint();
  model.install(place.source.load(), role);
  places_.push_back(std::move(place));
}

void Reloader::look() {
  for (Place& place : places_) look_at(place);
}

void Reloader::look_at(Place& place) {
  std::string found = place.source.fingerprint();
  const bool is_new = !found.empty() && found != place.read;
  const bool is_settled = found == place.seen;
  place.seen = std::move(found);
  if (is_new && is_settled) reload(place);
}

void Reloader::reload(Place& place) {
  const std::string& model = place.model->name();
  try {
    auto version = place.source.load();
    if (place.source.fingerprint() != place.seen) return;  // written to meanwhile: the next look
    place.read = place.seen;
    const std::string hash = version->hash(), source = version->source();
    if (!place.model->install(std::move(version), place.role)) return;
    log_(LogLevel::info, fmt::format("{}: version {} from {}", model, hash, source));
    if (on_reload_) on_reload_(model, true);
  } catch (const std::exception& error) {
    if (place.source.fingerprint() != place.seen) return;
    place.read = place.seen;
    log_(LogLevel::warning,
         fmt::format("{}: refused, the version before it goes on: {}", model, message_of(error)));
    if (on_reload_) on_reload_(model, false);
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
