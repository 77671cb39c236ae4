#include "observe/trace_packets.hpp"

#include <protozero/pbf_writer.hpp>

namespace fast::observe {
namespace {

namespace event_field = event_field_of_track;

/// A packet that `fill` writes.
template <class Fill>
std::string packet(int worker, const Fill& fill) {
  std::string bytes;
  {
    protozero::pbf_writer trace(bytes);
    protozero::pbf_writer one(trace, trace_field::packet);
    one.add_uint32(packet_field::sequence, static_cast<std::uint32_t>(worker) + 1);
    fill(one);
  }
  return bytes;
}

void annotate(protozero::pbf_writer& event, const TrackEvent& from) {
  for (const auto& [name, value] : from.integers) {
    protozero::pbf_writer annotation(event, event_field::annotation);
    annotation.add_string(annotation_field::name, name);
    annotation.add_int64(annotation_field::integer, value);
  }
  if (from.text.empty()) return;
  protozero::pbf_writer annotation(event, event_field::annotation);
  annotation.add_string(annotation_field::name, "text");
  annotation.add_string(annotation_field::text, from.text);
}

}  // namespace

std::string packet_of(const Track& track) {
  return packet(track.worker, [&](protozero::pbf_writer& one) {
    protozero::pbf_writer descriptor(one, packet_field::track);
    descriptor.add_uint64(track_field::uuid, track.uuid);
    descriptor.add_string(track_field::name, track.name);
    if (track.parent != 0) descriptor.add_uint64(track_field::parent, track.parent);
    if (track.counts) descriptor.add_message(track_field::counter, std::string());
    if (track.parent != 0) return;
    protozero::pbf_writer process(descriptor, track_field::process);
    process.add_int32(process_field::pid, track.worker + 1);
    process.add_string(process_field::name, track.name);
  });
}

std::string packet_of(const TrackEvent& from) {
  return packet(from.worker, [&](protozero::pbf_writer& one) {
    one.add_uint64(packet_field::timestamp, from.time_ns);
    protozero::pbf_writer event(one, packet_field::event);
    event.add_enum(event_field::type, from.type);
    event.add_uint64(event_field::track, from.track);
    if (from.type == event_type::counter) event.add_double(event_field::number, from.number);
    if (!from.name.empty()) event.add_string(event_field::name, from.name);
    for (const std::uint64_t flow : from.flows) event.add_fixed64(event_field::flow, flow);
    if (from.last_flow != 0) event.add_fixed64(event_field::last_flow, from.last_flow);
    annotate(event, from);
  });
}

}  // namespace fast::observe
