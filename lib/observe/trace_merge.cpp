#include <fast/core/error.hpp>
#include <fast/observe/trace_files.hpp>
#include <map>
#include <set>

#include "core/whole_file.hpp"
#include "observe/trace_reader.hpp"

namespace fast::observe {
namespace {

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

MergedTrace merge_traces(const std::filesystem::path& directory, const std::filesystem::path& to) {
  TraceContent content = read_traces(directory);
  MergedTrace merged;
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

}  // namespace fast::observe
