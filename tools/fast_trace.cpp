// fast-trace: joins the timelines of a run's workers, and says where the time went.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fast/core/message.hpp>
#include <fast/observe/trace_files.hpp>
#include <filesystem>
#include <string>

#include "cli/command_line.hpp"
#include "cli/program.hpp"

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

int run(int argc, char** argv) {
  CLI::App app("Joins the timelines of a run's workers, and says where the time went.",
               "fast-trace");
  app.require_subcommand(1);
  std::string directory, to;
  CLI::App* merged = app.add_subcommand("merge", "one file of all workers, for ui.perfetto.dev");
  const auto add_run = [&directory](CLI::App& command) {
    tools::offer(command.add_option("run", directory, "the directory of a run (--out)")->required(),
                 {"<directory>"});
  };
  add_run(*merged);
  tools::offer(merged->add_option(
                   "--to", to, "the file to write; without it, merged.pftrace beside the traces"),
               {"<file>"});
  CLI::App* summary = app.add_subcommand(
      "summary", "who waited for whom, and what held up the slowest 1 % of rounds");
  add_run(*summary);
  if (const auto status = tools::parse(app, argc, argv)) return *status;
  if (*merged) merge(directory, to);
  if (*summary) {
    fmt::print("{}", observe::to_text(observe::summarize_traces(traces_of(directory))));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (const std::exception& error) {
  fmt::print(stderr, "fast-trace: {}\n", message_of(error));
  return 1;
}
