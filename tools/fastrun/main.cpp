// fastrun: starts the ranks of a job so that those that live go on when one dies.
//
// mpiexec runs one wrapper a rank, which runs the program as its child. The process manager ends a
// job when a rank goes without farewell; the wrappers never go before all ranks have ended. It also
// gives up when a whole host is lost; the wrappers then go on without it, in sessions of their own.
#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/command_line.hpp"
#include "fastrun.hpp"

namespace {

void describe(CLI::App& app, fastrun::Options& options, bool& doctor) {
  app.option_defaults()->always_capture_default();
  app.prefix_command();
  app.add_option("-n,--ranks", options.ranks, "workers to start")->check(CLI::PositiveNumber);
  app.add_option("--spares", options.spares,
                 "ranks besides -n that sleep until a worker is lost and then take its place, or "
                 "join; the program must know spares, as fast-train does")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--hosts", options.hosts,
                 "names of hosts, separated by commas; default: this one");
  app.add_option("--ppn", options.ranks_per_host, "ranks on each host; 0: as mpiexec has it");
  app.add_option("--start-deadline", options.start_deadline_s,
                 "seconds after which the others are ended when a rank dies before training began");
  app.add_option("--launch-deadline", options.launch_deadline_s,
                 "seconds in which mpiexec must have started all ranks")
      ->check(CLI::PositiveNumber);
  app.add_option("--lost-after", options.lost_after_s,
                 "seconds without an answer after which a host is lost and its ranks end")
      ->check(CLI::Range(2.0, 1e6));
  app.add_option("--min-workers", options.min_workers,
                 "ranks that must end well for the job to have succeeded; a spare counts only if "
                 "it has taken a seat");
  app.add_option(
      "--control", options.control,
      "a file for requests to the running job: after echo leave 2 >> FILE, rank 2 ends "
      "with status 0 and the others go on; after echo grow >> FILE, a spare joins as one "
      "worker more");
  app.add_option("--grow-at", options.grow_at,
                 "seconds after training began when a spare joins as one worker more; may be "
                 "repeated, --spares times at most")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false)
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", options.threads,
                 "OMP_NUM_THREADS and its kin for each rank; 0: the cores divided by the ranks");
  app.add_option("--mpiexec", options.mpiexec, "MPICH's mpiexec");
  app.add_option("--mpiexec-option", options.mpiexec_options,
                 "passed on to mpiexec; may be repeated")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1);
  app.add_flag(
      "--watch", options.watch,
      "show a table of all ranks: round, samples/s, share of time waiting, age of what was "
      "read, state and last words; a few lines every 3 s if standard error is no terminal");
  app.add_flag("--doctor", doctor,
               "check what runs need here and on the hosts, and say what to mend");
  app.footer(
      "SIGTERM, SIGINT and SIGUSR2 are passed on to the ranks; a second SIGINT kills them.\n"
      "Works from a plain shell; in Slurm within salloc or sbatch, where mpiexec finds the hosts;\n"
      "over ssh with --hosts.");
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--wrap") {
    return fastrun::wrap({argv + 2, argv + argc});
  }
  fastrun::Options options;
  bool doctor = false;
  CLI::App app(
      "Starts the ranks of a job so that those that live go on when one dies:\n"
      "  fastrun -n 8 ./program arguments...",
      "fastrun");
  describe(app, options, doctor);
  if (const auto status = tools::parse(app, argc, argv)) return *status;
  options.program = app.remaining();
  const bool begins_with_option = !options.program.empty() && options.program[0].starts_with("-");
  if (begins_with_option && options.program[0] != "--") {
    fmt::print(stderr, "fastrun: {}\n", tools::unknown_option(app, options.program[0]));
    return 2;
  }
  if (!options.program.empty() && options.program.front() == "--") {
    options.program.erase(options.program.begin());
  }
  if (doctor) return fastrun::examine(options);
  if (options.program.empty()) {
    fmt::print(stderr, "fastrun: no program given; fastrun -n 8 ./program arguments...\n");
    return 2;
  }
  if (options.grow_at.size() > static_cast<std::size_t>(options.spares)) {
    fmt::print(stderr, "fastrun: --grow-at is given {} times, --spares is {}; start more spares\n",
               options.grow_at.size(), options.spares);
    return 2;
  }
  return fastrun::launch(options);
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
