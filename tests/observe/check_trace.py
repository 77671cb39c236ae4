"""Decodes a merged timeline with Perfetto's own schema: check_trace.py FILE WORKERS, or FILE and the processes' names"""

import collections
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema


def check(path, names):
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    tracks = {}
    stacks = collections.defaultdict(list)
    begins, ends, slices = {}, {}, 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            continue
        event = packet.track_event
        assert event.track_uuid in tracks, "an event without a track"
        for flow in event.flow_ids:
            assert flow not in begins, "two publications with one flow"
            begins[flow] = packet.timestamp
        for flow in event.terminating_flow_ids:
            assert flow not in ends, "two reads with one flow"
            ends[flow] = packet.timestamp
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            stacks[event.track_uuid].append((event.name, packet.timestamp))
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            assert stacks[event.track_uuid], "an end without a begin"
            _, began = stacks[event.track_uuid].pop()
            assert began <= packet.timestamp, "a slice that ends before it begins"
            slices += 1
    assert not any(stacks.values()), "a slice that does not end"
    processes = [t.process.process_name for t in tracks.values() if t.HasField("process")]
    pids = {t.process.pid for t in tracks.values() if t.HasField("process")}
    assert sorted(processes) == sorted(names) and len(pids) == len(names), processes
    assert ends and set(ends) == set(begins), "flows that do not end"
    assert all(begins[flow] <= ends[flow] for flow in ends), "a read before its publication"
    print(f"{slices} slices, all nested; {len(ends)} flows, each from a publication to a later read")


path, *names = sys.argv[1:]
check(path, [f"worker {w}" for w in range(int(names[0]))] if names[0].isdigit() else names)
