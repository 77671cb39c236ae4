#include "observe/trace_reader.hpp"

#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "observe/clock_offset.hpp"

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
  std::ranges::stable_sort(content.events, [](const TrackEvent& a, const TrackEvent& b) {
    return a.time_ns < b.time_ns;
  });
}

namespace {

namespace event_field = event_field_of_track;
using protozero::pbf_reader;

Track track_of(pbf_reader reader) {
  Track track;
  while (reader.next()) {
    switch (reader.tag()) {
      case track_field::uuid:
        track.uuid = reader.get_uint64();
        break;
      case track_field::name:
        track.name = reader.get_string();
        break;
      case track_field::parent:
        track.parent = reader.get_uint64();
        break;
      case track_field::counter:
        track.counts = true;
        reader.skip();
        break;
      default:
        reader.skip();
    }
  }
  return track;
}

void read_annotation(pbf_reader reader, TrackEvent& event) {
  std::string name;
  while (reader.next()) {
    switch (reader.tag()) {
      case annotation_field::name:
        name = reader.get_string();
        break;
      case annotation_field::integer:
        event.integers.emplace_back("", reader.get_int64());
        break;
      case annotation_field::text:
        event.text = reader.get_string();
        break;
      default:
        reader.skip();
    }
  }
  if (!event.integers.empty() && event.integers.back().first.empty()) {
    event.integers.back().first = name;
  }
}

void read_event(pbf_reader reader, TrackEvent& event) {
  while (reader.next()) {
    switch (reader.tag()) {
      case event_field::type:
        event.type = reader.get_enum();
        break;
      case event_field::track:
        event.track = reader.get_uint64();
        break;
      case event_field::name:
        event.name = reader.get_string();
        break;
      case event_field::number:
        event.number = reader.get_double();
        break;
      case event_field::flow:
        event.flows.push_back(reader.get_fixed64());
        break;
      case event_field::last_flow:
        event.last_flow = reader.get_fixed64();
        break;
      case event_field::annotation:
        read_annotation(reader.get_message(), event);
        break;
      default:
        reader.skip();
    }
  }
}

void read_packet(pbf_reader packet, TraceContent& content) {
  TrackEvent event;
  std::optional<Track> track;
  while (packet.next()) {
    switch (packet.tag()) {
      case packet_field::timestamp:
        event.time_ns = packet.get_uint64();
        break;
      case packet_field::sequence:
        event.worker = static_cast<int>(packet.get_uint32()) - 1;
        break;
      case packet_field::event:
        read_event(packet.get_message(), event);
        break;
      case packet_field::track:
        track = track_of(packet.get_message());
        break;
      default:
        packet.skip();
    }
  }
  if (track) {
    track->worker = event.worker;
    content.tracks.push_back(*track);
  } else if (event.type != 0) {
    content.events.push_back(std::move(event));
  }
}

bool is_trace(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("trace-") && path.extension() == ".pftrace";
}

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

bool read_trace(std::string_view bytes, TraceContent& content) {
  pbf_reader trace(bytes.data(), bytes.size());
  try {
    while (trace.next()) {
      if (trace.tag() == trace_field::packet) {
        read_packet(trace.get_message(), content);
      } else {
        trace.skip();
      }
    }
  } catch (const protozero::end_of_buffer_exception&) {
    return false;
  }
  return true;
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
  std::set<std::uint64_t> known;
  std::erase_if(content.tracks,
                [&](const Track& track) { return !known.insert(track.uuid).second; });
  align(content);
  return content;
}

}  // namespace fast::observe
