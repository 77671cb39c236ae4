// fast-trace: joins the timelines of a run's workers, and says where the time went.
#include <fmt/format.h>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "core/message.hpp"
#include "observe/trace_files.hpp"

using namespace fast;

namespace {

/// A run's directory has its traces in a directory of their own.
std::filesystem::path traces_of(const std::filesystem::path& run) {
  std::error_code ignored;
  return std::filesystem::is_directory(run / "traces", ignored) ? run / "traces" : run;
}

void merge(const std::vector<std::string>& runs, std::filesystem::path to) {
  std::vector<std::filesystem::path> directories;
  for (const std::string& run : runs) directories.push_back(traces_of(run));
  if (to.empty())
    to = directories.front() / (runs.size() == 1 ? "merged.pftrace" : "sites.pftrace");
  const observe::MergedTrace merged = observe::merge_traces(directories, to);
  fmt::print("{}: {} workers, {} events, {} reads with their publications\n",
             printable(to.string()), merged.workers, merged.events, merged.flows);
  if (merged.cut > 0) {
    fmt::print("{} files end within an event: their worker was killed\n", merged.cut);
  }
  for (const std::string& site : merged.apart)
    fmt::print(
        "site {}: its clock is not known to others here; its times are its own, and arrows to and "
        "from it may be missing: merge it with the sites that it has exchanged weights with\n",
        printable(site));
  fmt::print("open it at https://ui.perfetto.dev\n");
}

int run(int argc, char** argv) {
  tools::Command program("fast-trace",
                         "Joins the timelines of a run's workers, and says where the time went.",
                         "fast-trace merge run");
  std::vector<std::string> directories;
  std::string directory, to;
  tools::Command& merged =
      program.add_command("merge", "Writes one file of all workers, for ui.perfetto.dev.");
  tools::offer(merged
                   .add_option("run", directories,
                               "the directory of a run (--out); of several sites, one of each")
                   ->required(),
               {"<directory>"});
  merged.begin_group("Output", "fast-trace merge run --to timeline.pftrace");
  tools::offer(
      merged.add_option("--to", to,
                        "the file to write; without it, merged.pftrace beside the traces, of "
                        "several sites sites.pftrace beside those of the first"),
      {"<file>"});
  tools::Command& summary = program.add_command(
      "summary", "Says who waited for whom, and what held up the slowest 1 % of rounds.",
      "fast-trace summary run");
  tools::offer(summary.add_option("run", directory, "the directory of a run (--out)")->required(),
               {"<directory>"});
  if (const auto status = tools::parse(program, argc, argv)) return *status;
  if (merged.parsed()) merge(directories, to);
  if (summary.parsed()) {
    fmt::print("{}", observe::to_text(observe::summarize_traces(traces_of(directory))));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-trace", [&] { return run(argc, argv); });
}
