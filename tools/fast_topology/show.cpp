#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/topology_tools/picture.hpp>
#include <fast/topology_tools/save.hpp>

#include "core/whole_file.hpp"
#include "fast_topology/commands.hpp"
#include "fast_topology/figures.hpp"

namespace fast_topology {

using namespace fast;

namespace {

constexpr int most_printed_workers = 1000;

std::string caption_of(const Analysis& a) {
  std::string text = fmt::format("{} workers, {} neighbor{} a round", a.workers, neighbors_of(a),
                                 a.most_degree == 1 ? "" : "s");
  if (a.gap) text += fmt::format(", gap {}", shown(a.gap, "at most", 3));
  return text;
}

void write_files(const Options& o, const Subject& subject, const Analysis& analysis) {
  if (!o.save.empty()) {
    write(o.save, topology_text(subject.schedule, o.save, subject.rule, subject.lazy));
  }
  if (!o.dot.empty()) write(o.dot, dot_picture(subject.schedule));
  if (!o.svg.empty()) write(o.svg, svg_picture(subject.schedule, caption_of(analysis)));
}

void print_names(bool schedules) {
  for (const TopologyName& name : topology_names()) {
    if (name.is_schedule == schedules) fmt::print("  {:<24}{}\n", name.name, name.help);
  }
}

}  // namespace

void write(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  write_whole(path, text);
}

void show(const Options& options) {
  const Subject subject = subject_of(options.names.front(), options);
  require(!options.matrix || subject.schedule.workers() <= most_printed_workers,
          ErrorKind::argument, "show --matrix: {} workers, at most {} are printed",
          subject.schedule.workers(), most_printed_workers);
  const Analysis analysis = analyze(subject.schedule, subject.rule, subject.lazy);
  write_files(options, subject, analysis);
  if (options.dot == "-" || options.svg == "-") return;
  if (options.json) {
    fmt::print("{}\n", json_of(analysis, subject, options).dump(2));
  } else {
    print(analysis, subject, options);
  }
}

void list() {
  fmt::print("Topologies (a name, or a path to a .toml or .mtx file):\n");
  print_names(false);
  fmt::print("\nSchedules (another topology each round):\n");
  print_names(true);
  fmt::print("\nWeights: metropolis, uniform_rows, uniform_columns, given, automatic, fastest\n");
}

}  // namespace fast_topology
