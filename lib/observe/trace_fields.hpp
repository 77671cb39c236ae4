// Numbers of Perfetto's fields, of protos/perfetto/trace.
#pragma once

namespace fast::observe {

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

}  // namespace fast::observe
