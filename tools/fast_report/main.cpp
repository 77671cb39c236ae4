// fast-report: one HTML page about one or more training runs.
#include <fmt/format.h>

#include <fast/core/error.hpp>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "fast_report/html.hpp"
#include "fast_report/page.hpp"

using namespace fast;

namespace {

std::vector<fast_report::Run> read_all(const std::vector<std::string>& directories) {
  std::vector<fast_report::Run> runs;
  for (const std::string& directory : directories) {
    runs.push_back(fast_report::read_run(directory));
  }
  const std::vector<std::string> names = fast_report::names_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& fault : runs[i].faults) {
      fast::say("{}: {}\n", printable(names[i]), printable(fault));
    }
  }
  return runs;
}

struct Options {
  std::vector<std::string> directories;
  std::string file = "report.html";
  bool overwrite = false;
};

void add_options(tools::Command& program, Options& options) {
  tools::offer(program
                   .add_option("run", options.directories,
                               "the directory of a run (fast-train --out), or of several; they may "
                               "still train")
                   ->required(),
               {"<directory>"});
  program.begin_group("Output", "fast-report runs/ring runs/torus --html compare.html");
  tools::offer(program.add_option("--html", options.file,
                                  "the page to write; a report that is there is replaced"),
               {"<file>"});
  program.add_flag("--overwrite", options.overwrite, "replace the file even if it is not a report");
}

int run(int argc, char** argv) {
  tools::Command program(
      "fast-report",
      "Writes one HTML page about training runs: curves, topology, waiting, events, options.\n"
      "The page needs no network and no other file. Several runs are compared.",
      "fast-report run");
  Options options;
  add_options(program, options);
  if (const auto status = tools::parse(program, argc, argv)) return *status;
  fast_report::require_replaceable(options.file, options.overwrite);
  const std::vector<fast_report::Run> runs = read_all(options.directories);
  const std::string page = fast_report::page_of(runs);
  fast::write_whole(options.file, page);
  fmt::print("{}: {}, {:.1f} MB; open it in a browser\n", printable(options.file),
             fast_report::counted(static_cast<std::int64_t>(runs.size()), "run"),
             1e-6 * static_cast<double>(page.size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-report", [&] { return run(argc, argv); });
}
