#include "observe/trace_packets.hpp"

#include <fmt/format.h>

#include <optional>
#include <protozero/pbf_reader.hpp>
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

constexpr std::string_view at_site = " worker ";  // the name of a site has no spaces

}  // namespace

std::string name_at_site(const std::string& site, int worker) {
  return fmt::format("{}{}{}", site, at_site, worker);
}

std::string site_in_name(const std::string& name) {
  const std::size_t end = name.rfind(at_site);
  return end == name.npos ? std::string() : name.substr(0, end);
}

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

namespace {

using protozero::pbf_reader;

Track track_of(pbf_reader reader) {
  Track track;
  while (reader.next()) {
    track.counts = track.counts || reader.tag() == track_field::counter;
    if (reader.tag() == track_field::uuid)
      track.uuid = reader.get_uint64();
    else if (reader.tag() == track_field::name)
      track.name = reader.get_string();
    else if (reader.tag() == track_field::parent)
      track.parent = reader.get_uint64();
    else
      reader.skip();
  }
  return track;
}

void read_annotation(pbf_reader reader, TrackEvent& event) {
  std::string name;
  while (reader.next()) {
    if (reader.tag() == annotation_field::name)
      name = reader.get_string();
    else if (reader.tag() == annotation_field::integer)
      event.integers.emplace_back("", reader.get_int64());
    else if (reader.tag() == annotation_field::text)
      event.text = reader.get_string();
    else
      reader.skip();
  }
  if (!event.integers.empty() && event.integers.back().first.empty()) {
    event.integers.back().first = name;
  }
}

void read_event(pbf_reader reader, TrackEvent& event) {
  while (reader.next()) {
    if (reader.tag() == event_field::type)
      event.type = reader.get_enum();
    else if (reader.tag() == event_field::track)
      event.track = reader.get_uint64();
    else if (reader.tag() == event_field::name)
      event.name = reader.get_string();
    else if (reader.tag() == event_field::number)
      event.number = reader.get_double();
    else if (reader.tag() == event_field::flow)
      event.flows.push_back(reader.get_fixed64());
    else if (reader.tag() == event_field::last_flow)
      event.last_flow = reader.get_fixed64();
    else if (reader.tag() == event_field::annotation)
      read_annotation(reader.get_message(), event);
    else
      reader.skip();
  }
}

void read_packet(pbf_reader packet, TraceContent& content) {
  TrackEvent event;
  std::optional<Track> track;
  while (packet.next()) {
    if (packet.tag() == packet_field::timestamp)
      event.time_ns = packet.get_uint64();
    else if (packet.tag() == packet_field::sequence)
      event.worker = static_cast<int>(packet.get_uint32()) - 1;
    else if (packet.tag() == packet_field::event)
      read_event(packet.get_message(), event);
    else if (packet.tag() == packet_field::track)
      track = track_of(packet.get_message());
    else
      packet.skip();
  }
  if (track) {
    track->worker = event.worker;
    content.tracks.push_back(*track);
  } else if (event.type != 0) {
    content.events.push_back(std::move(event));
  }
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

}  // namespace fast::observe
