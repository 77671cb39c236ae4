// Packets of a Perfetto trace: written for a file, and read from one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fast::observe {

// Numbers of Perfetto's fields, of protos/perfetto/trace.

namespace trace_field {
inline constexpr int packet = 1;
}
namespace packet_field {
inline constexpr int timestamp = 8, sequence = 10, event = 11, track = 60;
}
namespace track_field {
inline constexpr int uuid = 1, name = 2, process = 3, parent = 5, counter = 8;
}
namespace process_field {
inline constexpr int pid = 1, name = 6;
}
namespace event_field_of_track {
inline constexpr int annotation = 4, type = 9, track = 11, category = 22, name = 23, number = 44,
                     flow = 47, last_flow = 48;
}
namespace annotation_field {
inline constexpr int integer = 4, text = 6, name = 10;
}
/// TrackEvent.Type
namespace event_type {
inline constexpr int begin = 1, end = 2, instant = 3, counter = 4;
}

/// From these bits on, the number of a track and of a flow has its worker's number, from 1 on.
inline constexpr unsigned worker_bit_of_track = 32, worker_bit_of_flow = 40;
/// Flows between sites have this bit, and no worker.
inline constexpr std::uint64_t flow_between_sites = std::uint64_t{1} << 63U;

/// A row of the timeline.
struct Track {
  std::uint64_t uuid = 0;
  std::uint64_t parent = 0;  ///< 0: it is a process
  std::string name;
  bool counts = false;  ///< numbers in place of slices
  int worker = 0;
};

struct TrackEvent {
  int type = 0;  ///< event_type
  std::uint64_t track = 0;
  std::uint64_t time_ns = 0;
  std::string name{};
  double number = 0;                                             ///< of a counter
  std::vector<std::uint64_t> flows{};                            ///< that begin here
  std::uint64_t last_flow = 0;                                   ///< that ends here; 0: none
  std::vector<std::pair<std::string, std::int64_t>> integers{};  ///< shown with the event
  std::string text{};                                            ///< the same; empty: none
  int worker = 0;
};

/// A packet, ready to be appended to a file.
std::string packet_of(const Track& track);
std::string packet_of(const TrackEvent& event);

/// A process of a job that is a site.
std::string name_at_site(const std::string& site, int worker);
/// The site in such a name. Empty: the process is of no site.
std::string site_in_name(const std::string& name);

/// What is in one or several files of traces.
struct TraceContent {
  std::vector<Track> tracks;       ///< each once
  std::vector<TrackEvent> events;  ///< by time; of equal times, in the order written
  int cut = 0;                     ///< files whose last packet was cut off: their writer was killed
};

/// Adds what is in the bytes of one file. False when the last packet is not whole.
bool read_trace(std::string_view bytes, TraceContent& content);

}  // namespace fast::observe
