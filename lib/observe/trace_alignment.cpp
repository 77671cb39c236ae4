#include "observe/trace_alignment.hpp"

#include <algorithm>
#include <cmath>
#include <fast/observe/clock_offset.hpp>
#include <map>
#include <set>

namespace fast::observe {
namespace {

/// A process: the part of a track's number that its tracks have in common.
std::uint64_t process_of(std::uint64_t track) { return track >> 16U; }

struct Reading {
  std::uint64_t time_ns = 0;
  double offset_s = 0;
};

struct Offsets {
  Reading first, last;

  void add(const Reading& reading) {
    if (first.time_ns == 0 || reading.time_ns < first.time_ns) first = reading;
    if (reading.time_ns > last.time_ns) last = reading;
  }
  std::uint64_t corrected(std::uint64_t time_ns) const {
    const auto length = static_cast<double>(last.time_ns - first.time_ns);
    const double since = static_cast<double>(time_ns) - static_cast<double>(first.time_ns);
    const double share = length > 0 ? std::clamp(since / length, 0.0, 1.0) : 0;
    const double offset_s = first.offset_s + share * (last.offset_s - first.offset_s);
    return time_ns - static_cast<std::uint64_t>(std::llround(offset_s * 1e9));  // modulo 2⁶⁴
  }
};

}  // namespace

void align(TraceContent& content) {
  std::set<std::uint64_t> tracks;
  for (const Track& track : content.tracks) {
    if (track.name == clock_offset_name) tracks.insert(track.uuid);
  }
  std::map<std::uint64_t, Offsets> offsets;
  for (const TrackEvent& event : content.events) {
    if (tracks.contains(event.track))
      offsets[process_of(event.track)].add({event.time_ns, event.number});
  }
  std::erase_if(content.events,
                [&](const TrackEvent& event) { return tracks.contains(event.track); });
  std::erase_if(content.tracks, [&](const Track& track) { return tracks.contains(track.uuid); });
  for (TrackEvent& event : content.events) {
    const auto known = offsets.find(process_of(event.track));
    if (known != offsets.end()) event.time_ns = known->second.corrected(event.time_ns);
  }
  std::stable_sort(content.events.begin(), content.events.end(),
                   [](const TrackEvent& a, const TrackEvent& b) { return a.time_ns < b.time_ns; });
}

}  // namespace fast::observe
