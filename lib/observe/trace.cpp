#include <fmt/core.h>

#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/observe/trace.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "observe/clock_offset.hpp"
#include "observe/output_file.hpp"
#include "observe/trace_packets.hpp"

namespace fast::observe {
namespace {

constexpr std::size_t least_trace_bytes = std::size_t{64} << 10U;

std::filesystem::path trace_path(const std::filesystem::path& directory, int worker, int run,
                                 char part) {
  return directory / fmt::format("trace-{}.{}{}.pftrace", worker, run, part);
}

/// The first number of which there is no file yet: a run that goes on adds files.
int next_run(const std::filesystem::path& directory, int worker) {
  std::error_code ignored;
  int run = 0;
  while (std::filesystem::exists(trace_path(directory, worker, run, 'a'), ignored)) ++run;
  return run;
}

std::unique_ptr<OutputFile> trace_file(const std::filesystem::path& path, const LogSink& log) {
  return std::make_unique<OutputFile>("trace", path, log);
}

/// Of a publication; the same in all workers' files, never 0.
std::uint64_t flow_of(int worker, std::uint64_t sequence) {
  return static_cast<std::uint64_t>(worker + 1) << worker_bit_of_flow | sequence;
}

/// Of a site's publication; the same in all sites' files, and none of flow_of().
std::uint64_t flow_of(const SiteEvent& event) {
  std::uint64_t site = 0;
  for (const char letter : event.site) site = mix_seed(site, static_cast<unsigned char>(letter));
  return mix_seed(site, event.incarnation, static_cast<std::uint64_t>(event.exchange)) |
         flow_between_sites;
}

std::uint64_t timeline_ns(Clock::time_point time) {
  return static_cast<std::uint64_t>(TimelineClock::of_process().at(time).count());
}

/// The tracks of one worker: made when they are first used.
class Tracks {
 public:
  Tracks(int worker, int run, Segments& segments)
      : worker_(worker), run_(run), segments_(segments) {
    name_process(fmt::format("worker {}", worker));
  }

  void name_process(const std::string& name) {
    segments_.add_heading(packet_of(Track{process(), 0, name, false, worker_}));
  }

  std::uint64_t of(const std::string& name, bool counts = false) {
    const auto known = numbers_.find(name);
    if (known != numbers_.end()) return known->second;
    const std::uint64_t uuid =
        process() | static_cast<std::uint64_t>(run_) << 16U | (numbers_.size() + 1);
    numbers_.emplace(name, uuid);
    segments_.add_heading(packet_of(Track{uuid, process(), name, counts, worker_}));
    return uuid;
  }
  /// Waits of different threads may overlap.
  std::uint64_t of_waits() {
    const auto number = threads_.emplace(std::this_thread::get_id(), threads_.size()).first->second;
    return of(number == 0 ? "waits for" : fmt::format("waits for, thread {}", number + 1));
  }

 private:
  std::uint64_t process() const {
    return static_cast<std::uint64_t>(worker_ + 1) << worker_bit_of_track;
  }

  int worker_, run_;
  Segments& segments_;
  std::map<std::string, std::uint64_t> numbers_;
  std::map<std::thread::id, std::size_t> threads_;
};

class Trace final : public Observer {
 public:
  Trace(const std::filesystem::path& directory, int worker, int run, const TraceOptions& options,
        const LogSink& log)
      : worker_(worker),
        options_(options),
        segments_(trace_file(trace_path(directory, worker, run, 'a'), log),
                  trace_file(trace_path(directory, worker, run, 'b'), log), options.size_bytes),
        tracks_(worker, run, segments_) {}

  void on_phase(const PhaseEvent& event) noexcept override {
    if (!is_wanted(event.round)) return;
    const std::lock_guard lock(mutex_);
    if (event.peer < 0) {
      write_slice(tracks_.of("rounds"), std::string(name(event.phase)), event.began, event.ended,
                  {{"round", event.round}});
    } else {
      write_slice(tracks_.of_waits(), fmt::format("worker {}", event.peer), event.began,
                  event.ended, {{"round", event.round}, {"peer", event.peer}});
    }
  }

  void on_message(const MessageEvent& event) noexcept override {
    if (!is_wanted(event.round)) return;
    const std::lock_guard lock(mutex_);
    const std::uint64_t flow = flow_of(event.from, event.sequence);
    const auto sequence = static_cast<std::int64_t>(event.sequence);
    TrackEvent instant = instant_at(event.at, event.round, "messages");
    if (event.kind == MessageEvent::Kind::published) {
      instant.name = "published";
      instant.flows = {flow};
    } else {
      instant.name = fmt::format("read worker {}", event.from);
      instant.last_flow = flow;
      instant.integers.insert(instant.integers.end(), {{"from", event.from}, {"age", event.age}});
    }
    instant.integers.emplace_back("sequence", sequence);
    segments_.append(packet_of(instant));
  }

  void on_peer(const PeerEvent& event) noexcept override {
    const std::lock_guard lock(mutex_);
    TrackEvent instant = instant_at(event.at, event.round, "events");
    instant.name = event.peer == worker_
                       ? std::string(name(event.kind))
                       : fmt::format("{} worker {}", name(event.kind), event.peer);
    instant.integers.emplace_back("peer", event.peer);
    segments_.append(packet_of(instant));
    segments_.flush();
  }

  void on_site(const SiteEvent& event) noexcept override {
    const std::lock_guard lock(mutex_);
    if (event.kind == SiteEvent::Kind::joined)
      return tracks_.name_process(name_at_site(event.site, worker_));
    if (event.kind == SiteEvent::Kind::forgotten || !is_wanted(event.round)) return;
    TrackEvent instant = instant_at(event.at, event.round, "sites");
    instant.integers.insert(instant.integers.end(),
                            {{"exchange", event.exchange},
                             {"incarnation", static_cast<std::int64_t>(event.incarnation)}});
    if (event.kind == SiteEvent::Kind::published) {
      instant.name = "published";
      instant.flows = {flow_of(event)};
    } else {
      instant.name = fmt::format("read site {}", event.site);
      instant.last_flow = flow_of(event);
      instant.integers.emplace_back("age", event.age);
    }
    segments_.append(packet_of(instant));
  }

  void on_scalar(const ScalarEvent& event) noexcept override {
    const bool is_offset = event.name == clock_offset_name;
    if (!is_wanted(event.round) && !is_offset) return;
    const std::lock_guard lock(mutex_);
    TrackEvent number;
    number.type = event_type::counter;
    number.track = tracks_.of(std::string(event.name), true);
    number.time_ns = timeline_ns(event.at);
    number.number = event.value;
    number.worker = worker_;
    is_offset ? segments_.add_heading(packet_of(number)) : segments_.append(packet_of(number));
  }

  void on_milestone(const MilestoneEvent& event) noexcept override {
    const std::lock_guard lock(mutex_);
    const bool is_epoch = event.kind == MilestoneEvent::Kind::epoch_ended;
    const std::string title =
        is_epoch ? fmt::format("epoch {}", event.epoch + 1) : std::string(name(event.kind));
    write_slice(tracks_.of(is_epoch ? "epochs" : "run"), title, event.began, event.ended,
                {{"round", event.round}}, std::string(event.text));
    segments_.flush();
  }

 private:
  bool is_wanted(std::int64_t round) const {
    return options_.first_round <= round && round <= options_.last_round;
  }

  TrackEvent instant_at(Clock::time_point at, std::int64_t round, const std::string& track) {
    return {.type = event_type::instant,
            .track = tracks_.of(track),
            .time_ns = timeline_ns(at),
            .integers = {{"round", round}},
            .worker = worker_};
  }

  void write_slice(std::uint64_t track, std::string title, Clock::time_point began,
                   Clock::time_point ended,
                   std::vector<std::pair<std::string, std::int64_t>> integers,
                   std::string text = {}) {
    const TrackEvent begin{.type = event_type::begin,
                           .track = track,
                           .time_ns = timeline_ns(began),
                           .name = std::move(title),
                           .integers = std::move(integers),
                           .text = std::move(text),
                           .worker = worker_};
    const TrackEvent end{
        .type = event_type::end, .track = track, .time_ns = timeline_ns(ended), .worker = worker_};
    segments_.append(packet_of(begin) + packet_of(end));
  }

  int worker_;
  TraceOptions options_;
  std::mutex mutex_;
  Segments segments_;
  Tracks tracks_;
};

}  // namespace

std::shared_ptr<Observer> trace(const std::filesystem::path& directory, int worker,
                                const TraceOptions& options, const LogSink& log) {
  require(options.size_bytes >= least_trace_bytes, ErrorKind::argument,
          "trace: a size of {} bytes; at least {} are required", options.size_bytes,
          least_trace_bytes);
  require(options.first_round <= options.last_round, ErrorKind::argument,
          "trace: rounds from {} to {}; the first comes before the last", options.first_round,
          options.last_round);
  return std::make_shared<Trace>(directory, worker, next_run(directory, worker), options, log);
}

}  // namespace fast::observe
