#include "observe/trace_files.hpp"

#include <fmt/format.h>

#include <protozero/exception.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <fast/core/error.hpp>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "core/contains.hpp"
#include "core/site_scalar.hpp"
#include "core/whole_file.hpp"
#include "observe/clock_offset.hpp"

namespace fast::observe {
namespace {

/// A process: the part of a track's number that its tracks have in common.
std::uint64_t process_of(std::uint64_t track) { return track >> 16U; }

/// The start of its job that a process belongs to: how often its worker had a trace before.
std::uint64_t start_of(std::uint64_t track) { return process_of(track) & 0xffffU; }

/// `time_ns` and so many seconds. Modulo 2⁶⁴.
std::uint64_t later(std::uint64_t time_ns, double seconds) {
  return time_ns + static_cast<std::uint64_t>(std::llround(seconds * 1e9));
}

constexpr std::uint64_t minute_ns = 60'000'000'000;

/// How far a clock is ahead of another one, by its own times. Lines lead from reading to reading,
/// but not over two minutes or a step.
class Offsets {
 public:
  void add(std::uint64_t time_ns, double offset_s) { readings_[time_ns] = offset_s; }
  void add(const Offsets& others) {
    readings_.insert(others.readings_.begin(), others.readings_.end());
  }
  std::size_t size() const { return readings_.size(); }
  std::uint64_t corrected(std::uint64_t time_ns) const { return later(time_ns, -at(time_ns)); }
  /// Of the other clock.
  Offsets reversed() const {
    Offsets result;
    for (const auto& [time_ns, offset_s] : readings_)
      result.add(later(time_ns, -offset_s), -offset_s);
    return result;
  }

 private:
  double at(std::uint64_t time_ns) const {
    const auto next = readings_.lower_bound(time_ns);
    if (next == readings_.begin()) return next->second;
    const auto last = std::prev(next);
    if (next == readings_.end()) return last->second;
    const double change = next->second - last->second;
    const double share =
        static_cast<double>(time_ns - last->first) / static_cast<double>(next->first - last->first);
    if (is_line(next->first - last->first, change)) return last->second + share * change;
    return share < 0.5 ? last->second : next->second;
  }
  /// A larger change is a step: one of the two clocks is that of a new process.
  bool is_line(std::uint64_t length_ns, double change_s) const {
    constexpr double steepest = 0.1;
    return length_ns <= 2 * minute_ns &&
           std::abs(change_s) * 1e9 <= steepest * static_cast<double>(length_ns);
  }

  std::map<std::uint64_t, double> readings_;  ///< not empty when at() is called
};

bool is_trace(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("trace-") && path.extension() == ".pftrace";
}

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Gives each read an arrow of its own, from its publication, which was before it. Returns how many
/// there are.
std::size_t connect(std::vector<TrackEvent>& events) {
  std::map<std::uint64_t, TrackEvent*> publications;
  std::uint64_t arrows = 0;
  for (TrackEvent& event : events) {
    if (!event.flows.empty()) {
      publications[event.flows.front()] = &event;  // of several Workers, the latest so far
      event.flows.clear();
    }
    if (event.last_flow == 0) continue;
    const auto from = publications.find(event.last_flow);
    event.last_flow = from == publications.end() ? 0 : ++arrows;
    if (event.last_flow != 0) from->second->flows.push_back(arrows);
  }
  return arrows;
}

}  // namespace

void align(TraceContent& content) {
  std::set<std::uint64_t> tracks;
  for (const Track& track : content.tracks) {
    if (track.name == clock_offset_name) tracks.insert(track.uuid);
  }
  std::map<std::uint64_t, Offsets> offsets;
  for (const TrackEvent& event : content.events) {
    if (tracks.contains(event.track))
      offsets[process_of(event.track)].add(event.time_ns, event.number);
  }
  std::erase_if(content.events,
                [&](const TrackEvent& event) { return tracks.contains(event.track); });
  std::erase_if(content.tracks, [&](const Track& track) { return tracks.contains(track.uuid); });
  for (TrackEvent& event : content.events) {
    const auto known = offsets.find(process_of(event.track));
    if (known != offsets.end()) event.time_ns = known->second.corrected(event.time_ns);
  }
  std::ranges::stable_sort(content.events, {}, &TrackEvent::time_ns);
}

TraceContent read_traces(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (is_trace(entry.path())) files.push_back(entry.path());
  }
  require(!error, ErrorKind::data, "{} cannot be read: {}; give the directory of a run",
          directory.string(), error.message());
  require(!files.empty(), ErrorKind::data,
          "{} holds no trace-*.pftrace; train with --trace, and give the directory of its traces",
          directory.string());
  std::ranges::sort(files);
  TraceContent content;
  for (const auto& file : files) {
    try {
      content.cut += read_trace(content_of(file), content) ? 0 : 1;
    } catch (const protozero::exception& problem) {
      fail(ErrorKind::mismatch, "{} is not a trace: {}; remove it", file.string(), problem.what());
    }
  }
  std::map<std::uint64_t, std::string> names;  // of a worker whose job is a site, that with it
  for (const Track& track : content.tracks) {
    std::string& name = names[track.uuid];
    if (name.empty() || !site_in_name(track.name).empty()) name = track.name;
  }
  std::erase_if(content.tracks, [&](Track& track) {
    const auto name = names.extract(track.uuid);
    if (!name.empty()) track.name = name.mapped();
    return name.empty();
  });
  align(content);
  return content;
}

namespace {

/// The traces of one site.
struct SiteTrace {
  explicit SiteTrace(const std::filesystem::path& directory) : content(read_traces(directory)) {
    std::map<std::uint64_t, std::string> clocks;  // by track
    for (const Track& track : content.tracks) {
      if (track.parent == 0) name = std::max(name, site_in_name(track.name));
      const auto other = other_site_scalar(track.name);
      if (other && other->what == "clock_ahead_s") clocks.emplace(track.uuid, other->site);
    }
    require(
        !name.empty(), ErrorKind::argument,
        "{} names no site: its job is none, ended in its first round, or had an earlier version; "
        "merge it alone",
        directory.string());
    // What was told last in each minute. A site tells the best of its newest answers.
    std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, const TrackEvent*> latest;
    for (const TrackEvent& event : content.events) {
      const auto clock = clocks.find(event.track);
      if (clock == clocks.end()) continue;
      const std::uint64_t since = event.time_ns - content.events.front().time_ns;
      latest[{clock->second, start_of(event.track), since / minute_ns}] = &event;
    }
    for (const auto& [key, event] : latest) {
      const auto& [site, start, minute] = key;
      ahead_of[site][start].add(later(event->time_ns, event->number), event->number);
    }
  }

  TraceContent content;
  std::string name;
  /// Clocks of other sites, of this one's, as measured in each start of its job.
  std::map<std::string, std::map<std::uint64_t, Offsets>> ahead_of;
};

/// How far a site's clock is ahead of that of another one.
struct SiteOffsets {
  std::map<std::uint64_t, Offsets> of_starts;  ///< of the site's job, if the site has measured
  Offsets all;
};

/// How far the clock of `site` is ahead of that of `other`, as the one of both has measured that
/// has more readings.
std::optional<SiteOffsets> offsets_of(const SiteTrace& site, const SiteTrace& other) {
  const auto measured = [](const SiteTrace& by, const SiteTrace& of, bool reversed) {
    SiteOffsets result;
    const auto found = by.ahead_of.find(of.name);
    if (found == by.ahead_of.end()) return result;
    for (const auto& [start, offsets] : found->second) {
      if (reversed) result.of_starts.emplace(start, offsets.reversed());
      result.all.add(reversed ? offsets.reversed() : offsets);
    }
    return result;
  };
  const SiteOffsets here = measured(site, other, true), there = measured(other, site, false);
  const SiteOffsets& more = here.all.size() > there.all.size() ? here : there;
  return more.all.size() == 0 ? std::nullopt : std::optional(more);
}

/// Ends of slices do not come before their begins, though a clock may have stepped between.
class SliceEnds {
 public:
  void hold(TrackEvent& event) {
    std::vector<std::uint64_t>& begins = begins_[event.track];
    if (event.type == event_type::begin) begins.push_back(event.time_ns);
    if (event.type != event_type::end || begins.empty()) return;
    event.time_ns = std::max(event.time_ns, begins.back());
    begins.pop_back();
  }

 private:
  std::map<std::uint64_t, std::vector<std::uint64_t>> begins_;  ///< by track
};

void require_apart(const std::vector<SiteTrace>& sites) {
  std::set<std::string> names;
  for (const SiteTrace& site : sites)
    require(names.insert(site.name).second, ErrorKind::argument,
            "two directories are of site {}; give each site once, and merge its other runs without "
            "other sites",
            site.name);
}

/// Moves all times to the clock of the first site. Returns the names of those that could not be.
std::vector<std::string> align(std::vector<SiteTrace>& sites) {
  struct Way {
    std::size_t to;  ///< an aligned site
    SiteOffsets offsets;
    std::uint64_t corrected(std::uint64_t time_ns, std::uint64_t start) const {
      const auto own = offsets.of_starts.find(start);
      return (own == offsets.of_starts.end() ? offsets.all : own->second).corrected(time_ns);
    }
  };
  std::vector<std::size_t> aligned = {0};
  std::map<std::size_t, Way> ways;
  for (std::size_t next = 0; next < aligned.size(); ++next) {
    const std::size_t to = aligned[next];
    for (std::size_t i = 1; i < sites.size(); ++i) {
      const auto offsets = ways.contains(i) ? std::nullopt : offsets_of(sites[i], sites[to]);
      if (!offsets) continue;
      ways.emplace(i, Way{to, *offsets});
      aligned.push_back(i);
    }
  }
  std::vector<std::string> apart;
  for (std::size_t i = 1; i < sites.size(); ++i) {
    if (!ways.contains(i)) apart.push_back(sites[i].name);
    SliceEnds ends;
    for (TrackEvent& event : sites[i].content.events) {
      for (auto way = ways.find(i); way != ways.end(); way = ways.find(way->second.to)) {
        event.time_ns = way->first == i
                            ? way->second.corrected(event.time_ns, start_of(event.track))
                            : way->second.offsets.all.corrected(event.time_ns);
      }
      ends.hold(event);
    }
  }
  return apart;
}

/// Workers count from `first` on, so that tracks, processes and flows of several jobs differ.
void renumber(TraceContent& content, int first) {
  const auto more = static_cast<std::uint64_t>(first);
  for (Track& track : content.tracks) {
    track.worker += first;
    track.uuid += more << worker_bit_of_track;
    if (track.parent != 0) track.parent += more << worker_bit_of_track;
  }
  const auto renumber_flow = [&](std::uint64_t& flow) {
    if (flow != 0 && (flow & flow_between_sites) == 0) flow += more << worker_bit_of_flow;
  };
  for (TrackEvent& event : content.events) {
    event.worker += first;
    event.track += more << worker_bit_of_track;
    std::ranges::for_each(event.flows, renumber_flow);
    renumber_flow(event.last_flow);
  }
}

TraceContent joined(std::vector<SiteTrace> sites) {
  TraceContent all;
  int workers = 0;
  for (auto& [content, name, ahead_of] : sites) {
    renumber(content, workers);
    for (const Track& track : content.tracks) workers = std::max(workers, track.worker + 1);
    std::ranges::move(content.tracks, std::back_inserter(all.tracks));
    std::ranges::move(content.events, std::back_inserter(all.events));
    all.cut += content.cut;
  }
  std::ranges::stable_sort(all.events, {}, &TrackEvent::time_ns);
  return all;
}

}  // namespace

MergedTrace merge_traces(const std::vector<std::filesystem::path>& directories,
                         const std::filesystem::path& to) {
  require(!directories.empty(), ErrorKind::argument,
          "merge_traces: no directory; at least one is required");
  MergedTrace merged;
  TraceContent content;
  if (directories.size() == 1) {
    content = read_traces(directories.front());
  } else {
    std::vector<SiteTrace> sites(directories.begin(), directories.end());
    require_apart(sites);
    merged.apart = align(sites);
    content = joined(std::move(sites));
  }
  merged.flows = connect(content.events);
  merged.events = content.events.size();
  merged.cut = content.cut;
  std::set<int> workers;
  WholeFile out(to);
  for (const Track& track : content.tracks) {
    workers.insert(track.worker);
    out.write(packet_of(track));
  }
  for (const TrackEvent& event : content.events) out.write(packet_of(event));
  out.finish();
  merged.workers = static_cast<int>(workers.size());
  return merged;
}

namespace {

constexpr double slowest_part = 0.01;

double seconds_of(std::uint64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

std::optional<std::int64_t> integer(const TrackEvent& event, std::string_view name) {
  for (const auto& [key, value] : event.integers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

/// One round of one worker.
struct RoundTimes {
  std::uint64_t began_ns = 0, ended_ns = 0;
  std::map<std::string, double> phases_s;
  std::map<int, double> waits_s;
  std::map<int, std::uint64_t> waits_began_ns;
  double seconds() const { return seconds_of(ended_ns - began_ns); }
};
/// A round; of a run that was resumed, each part has its own.
struct RoundKey {
  int worker = 0;
  std::uint64_t part = 0;
  std::int64_t round = 0;
  auto operator<=>(const RoundKey&) const = default;
};
using Rounds = std::map<RoundKey, RoundTimes>;

/// Pairs the begin and the end of each slice.
class Slices {
 public:
  explicit Slices(Rounds& rounds) : rounds_(rounds) {}

  void take(const TrackEvent& event) {
    if (event.type == event_type::begin) open_[event.track].push_back(event);
    if (event.type != event_type::end || open_[event.track].empty()) return;
    close(open_[event.track].back(), event.time_ns);
    open_[event.track].pop_back();
  }

 private:
  void close(const TrackEvent& begin, std::uint64_t ended_ns) {
    const auto number = integer(begin, "round");
    if (!number) return;
    RoundTimes& round = rounds_[{begin.worker, process_of(begin.track), *number}];
    const double took_s = seconds_of(ended_ns - begin.time_ns);
    if (const auto peer = integer(begin, "peer")) {
      round.waits_s[static_cast<int>(*peer)] += took_s;
      round.waits_began_ns[static_cast<int>(*peer)] = begin.time_ns;
      return;
    }
    round.phases_s[begin.name] += took_s;
    if (round.began_ns == 0) round.began_ns = begin.time_ns;
    round.began_ns = std::min(round.began_ns, begin.time_ns);
    round.ended_ns = std::max(round.ended_ns, ended_ns);
  }

  Rounds& rounds_;
  std::map<std::uint64_t, std::vector<TrackEvent>> open_;  ///< by track
};

template <class Map>
typename Map::const_iterator largest(const Map& map) {
  return std::ranges::max_element(map,
                                  [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// The round that was under way, or the last one that had ended before.
Rounds::const_iterator round_at(const Rounds& rounds, int worker, std::uint64_t time_ns) {
  auto found = rounds.end();
  for (auto round = rounds.lower_bound({worker, 0, 0});
       round != rounds.end() && round->first.worker == worker; ++round) {
    const bool begun = round->second.began_ns != 0 && round->second.began_ns <= time_ns;
    if (begun && (found == rounds.end() || found->second.began_ns < round->second.began_ns)) {
      found = round;
    }
  }
  return found;
}

/// Follows waits from worker to worker, to the one that did not wait: what each was doing when the
/// one before began to wait for it.
std::string cause_of(const Rounds& rounds, Rounds::const_iterator round) {
  std::vector<int> seen;
  for (;;) {
    const int worker = round->first.worker;
    const RoundTimes& times = round->second;
    const auto phase = largest(times.phases_s);
    if (phase == times.phases_s.end()) return fmt::format("worker {}: nothing", worker);
    const auto peer = largest(times.waits_s);
    seen.push_back(worker);
    const bool ends =
        phase->first != "wait" || peer == times.waits_s.end() || contains(seen, peer->first);
    if (ends) return fmt::format("worker {}: {}", worker, phase->first);
    round = round_at(rounds, peer->first, times.waits_began_ns.at(peer->first));
    if (round == rounds.end()) return fmt::format("worker {}: no trace", peer->first);
  }
}

void find_causes(const Rounds& rounds, TraceSummary& summary) {
  std::vector<Rounds::const_iterator> all;
  for (auto round = rounds.begin(); round != rounds.end(); ++round) all.push_back(round);
  std::ranges::stable_sort(
      all, [](const auto& a, const auto& b) { return a->second.seconds() > b->second.seconds(); });
  const auto count = static_cast<std::size_t>(slowest_part * static_cast<double>(all.size()) + 1);
  all.resize(std::min(all.size(), count));
  summary.slowest_rounds = static_cast<int>(all.size());
  std::map<std::string, int> causes;
  for (const auto& round : all) ++causes[cause_of(rounds, round)];
  summary.causes.assign(causes.begin(), causes.end());
  std::ranges::stable_sort(summary.causes,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

TraceSummary summarize_traces(const std::filesystem::path& directory) {
  const TraceContent content = read_traces(directory);
  TraceSummary summary;
  Rounds rounds;
  Slices slices(rounds);
  std::map<std::uint64_t, std::string> names;
  for (const Track& track : content.tracks) names[track.uuid] = track.name;
  for (const TrackEvent& event : content.events) {
    const std::string& track = names[event.track];
    if (track == "rounds" || track.starts_with("waits for")) slices.take(event);
    if (track == "events") {
      summary.events.emplace_back(seconds_of(event.time_ns - content.events.front().time_ns),
                                  fmt::format("worker {}: {}", event.worker, event.name));
    }
  }
  for (const auto& [key, round] : rounds) {
    TraceSummary::Worker& worker = summary.workers[key.worker];
    ++worker.rounds;
    worker.seconds += round.seconds();
    for (const auto& [phase, took_s] : round.phases_s) worker.phases_s[phase] += took_s;
    for (const auto& [peer, took_s] : round.waits_s) worker.waits_s[peer] += took_s;
  }
  find_causes(rounds, summary);
  return summary;
}

std::string to_text(const TraceSummary& summary) {
  std::string text = fmt::format("{:>6} {:>8} {:>9}", "worker", "rounds", "seconds");
  const std::vector<std::string> phases = {"step", "publish", "wait", "mix", "commit"};
  for (const std::string& phase : phases) text += fmt::format(" {:>8}", phase);
  text += "  waited most for\n";
  for (const auto& [number, worker] : summary.workers) {
    text += fmt::format("{:>6} {:>8} {:>9.2f}", number, worker.rounds, worker.seconds);
    for (const std::string& phase : phases) {
      const auto found = worker.phases_s.find(phase);
      const double part = found == worker.phases_s.end() ? 0 : found->second / worker.seconds;
      text += fmt::format(" {:>6.1f} %", 100 * part);
    }
    const auto peer = largest(worker.waits_s);
    if (peer != worker.waits_s.end()) {
      text += fmt::format("  worker {} ({:.2f} s)", peer->first, peer->second);
    }
    text += '\n';
  }
  text += fmt::format("\nthe slowest {} rounds were held up by\n", summary.slowest_rounds);
  for (const auto& [cause, count] : summary.causes)
    text += fmt::format("{:>8}  {}\n", count, cause);
  if (!summary.events.empty()) text += "\nevents (seconds since the beginning)\n";
  for (const auto& [at_s, what] : summary.events) text += fmt::format("{:>8.2f}  {}\n", at_s, what);
  return text;
}

}  // namespace fast::observe
