// Packets of a Perfetto trace. Each function returns one, ready to be appended to a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fast::observe {

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

std::string packet_of(const Track& track);
std::string packet_of(const TrackEvent& event);

}  // namespace fast::observe
