// fast-trace: joins the timelines of a run's workers, and says where the time went.
#include <fmt/format.h>
#include <filesystem>
#include <string>

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

void merge(const std::filesystem::path& run, std::filesystem::path to) {
  if (to.empty()) to = traces_of(run) / "merged.pftrace";
  const observe::MergedTrace merged = observe::merge_traces(traces_of(run), to);
  fmt::print("{}: {} workers, {} events, {} reads with their publications\n",
             printable(to.string()), merged.workers, merged.events, merged.flows);
  if (merged.cut > 0) {
    fmt::print("{} files end within an event: their worker was killed\n", merged.cut);
  }
  fmt::print("open it at https://ui.perfetto.dev\n");
}

void add_run(tools::Command& command, std::string& directory) {
  tools::offer(command.add_option("run", directory, "the directory of a run (--out)")->required(),
               {"<directory>"});
}

int run(int argc, char** argv) {
  tools::Command program("fast-trace",
                         "Joins the timelines of a run's workers, and says where the time went.",
                         "fast-trace merge run");
  std::string directory, to;
  tools::Command& merged =
      program.add_command("merge", "Writes one file of all workers, for ui.perfetto.dev.");
  add_run(merged, directory);
  merged.begin_group("Output", "fast-trace merge run --to timeline.pftrace");
  tools::offer(merged.add_option("--to", to,
                                 "the file to write; without it, merged.pftrace beside the traces"),
               {"<file>"});
  tools::Command& summary = program.add_command(
      "summary", "Says who waited for whom, and what held up the slowest 1 % of rounds.",
      "fast-trace summary run");
  add_run(summary, directory);
  if (const auto status = tools::parse(program, argc, argv)) return *status;
  if (merged.parsed()) merge(directory, to);
  if (summary.parsed()) {
    fmt::print("{}", observe::to_text(observe::summarize_traces(traces_of(directory))));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-trace", [&] { return run(argc, argv); });
}
