#include <fmt/core.h>

#include <string_view>

#include "cli/command.hpp"
#include "core/text.hpp"
#include "fastrun/fastrun.hpp"

namespace fastrun {

namespace {

using fast::options::one_or_more;
using fast::options::positive;
using fast::options::zero_or_more;
using tools::restrict;

/// Takes one value at a time, so that the program that follows is none.
CLI::Option* repeated(CLI::Option* option) {
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
}

/// Of an empty variable of a shell, too.
std::string why_no_hosts(const std::string& hosts) {
  for (const std::string_view name : fast::split_text(hosts, ',')) {
    if (name.empty() || name.starts_with('-') || name.starts_with(':'))
      return fmt::format("\"{}\"; names of hosts, separated by commas, are required", hosts);
  }
  return {};
}

void add_ranks(tools::Command& command, Options& options) {
  command.begin_group("Ranks", "fastrun -n 8 --hosts node1,node2 --ppn 4 fast-train");
  restrict<int>(command.add_option("-n,--ranks", options.ranks, "workers to start"), one_or_more());
  command
      .add_option("--hosts", options.hosts,
                  "names of hosts, separated by commas; without it, this host")
      ->check(CLI::Validator([](std::string& text) { return why_no_hosts(text); }, ""));
  restrict<int>(command.add_option("--ppn", options.ranks_per_host,
                                   "ranks on each host; 0: mpiexec decides how many"),
                zero_or_more());
  restrict<int>(
      command.add_option("--threads", options.threads,
                         "OMP_NUM_THREADS and similar variables for each rank; 0: what "
                         "OMP_NUM_THREADS is, or if it is not set, Slurm's --cpus-per-task, or "
                         "the cores divided by the ranks"),
      zero_or_more());
}

void add_changes(tools::Command& command, Options& options) {
  command.begin_group("Spares and changes", "fastrun -n 4 --spares 1 fast-train --epochs 3");
  restrict<int>(command.add_option("--spares", options.spares,
                                   "ranks besides -n that sleep until a worker is lost and then "
                                   "take its place, or join; the program must know spares, as "
                                   "fast-train does"),
                zero_or_more());
  restrict<double>(repeated(command.add_option(
                       "--grow-at", options.grow_at,
                       "seconds after training began when a spare joins as one worker more; may be "
                       "repeated, --spares times at most")),
                   zero_or_more());
  tools::offer(
      command.add_option(
          "--control", options.control,
          "a file for requests to the running job: after echo leave 2 >> FILE, rank 2 ends "
          "with status 0 and the others go on; after echo grow >> FILE, a spare joins as one "
          "worker more"),
      {"<file>"});
}

void add_failures(tools::Command& command, Options& options) {
  command.begin_group("Failures", "fastrun -n 8 --min-workers 6 --lost-after 10 fast-train");
  restrict<int>(command.add_option("--min-workers", options.min_workers,
                                   "ranks that must end well for the job to have succeeded; a "
                                   "spare counts only if it has taken a seat"),
                one_or_more());
  restrict<double>(
      command.add_option(
          "--lost-after", options.lost_after_s,
          "seconds without an answer after which a host is lost and its ranks end, 2 or more"),
      {.low = 2, .high = 1e6, .text = "a {}, 2 or more and below 1000000,"});
  restrict<double>(
      command.add_option(
          "--start-deadline", options.start_deadline_s,
          "seconds after which the others are ended when a rank dies before training began"),
      zero_or_more());
  restrict<double>(command.add_option("--launch-deadline", options.launch_deadline_s,
                                      "seconds in which mpiexec must have started all ranks"),
                   positive());
}

void add_mpi(tools::Command& command, Options& options) {
  command.begin_group("MPI", "fastrun -n 2 --mpiexec mpiexec.hydra fast-train");
  tools::offer(command.add_option("--mpiexec", options.mpiexec,
                                  "mpiexec of the MPI that FAST is built with"),
               {"<file>"});
  repeated(command.add_option("--mpiexec-option", options.mpiexec_options,
                              "passed on to mpiexec; may be repeated"));
}

void add_output(tools::Command& command, Options& options) {
  command.begin_group("Output of ranks", "fastrun -n 4 --prefix --log-dir logs fast-train");
  command.add_flag("--prefix", options.prefix, "begin each line of rank 3 with \"[3] \"");
  tools::offer(command.add_option("--log-dir", options.log_dir,
                                  "also append the output and the errors of rank 3 to the file "
                                  "rank-3.log in this folder, which is made if it is missing"),
               {"<directory>"});
}

void add_looks(tools::Command& command, Options& options, bool& doctor) {
  command.begin_group("Checks and progress", "fastrun --doctor -n 8 --hosts node1,node2");
  command.add_flag(
      "--watch", options.watch,
      "show a table of all ranks: round, samples/s, share of time waiting, age of what was "
      "read, state and last words; a few lines every 3 s if standard error is no terminal");
  command.add_flag("--doctor", doctor,
                   "check what runs need here and on the hosts, and say what to fix");
}

}  // namespace

void describe(tools::Command& command, Options& options, bool& doctor) {
  command.prefix_command();
  add_ranks(command, options);
  add_changes(command, options);
  add_failures(command, options);
  add_mpi(command, options);
  add_output(command, options);
  add_looks(command, options, doctor);
  command.footer(
      "SIGTERM, SIGINT and SIGUSR2 are passed on to the ranks; a second SIGINT kills them. SIGUSR1 "
      "and SIGXCPU, which queue systems send before the end of the time, become SIGUSR2.\n"
      "fastrun works from a plain shell. In Slurm it works within salloc or sbatch, where mpiexec "
      "finds the hosts. With --hosts it uses ssh.");
}

void take_np_for_n(const tools::Command& command, int argc, char** argv) {
  static char name[] = "-n";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-np") argv[i] = name;
    if (!word.starts_with('-') || word == "--") return;
    const CLI::Option* option = command.get_option_no_throw(argv[i]);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;  // its value
  }
}

std::string contradiction(const Options& options) {
  constexpr int most_ranks = 1'000'000;
  if (options.ranks > most_ranks || options.spares > most_ranks) {
    return fmt::format("{} ranks and {} spares; start at most {} of each", options.ranks,
                       options.spares, most_ranks);
  }
  if (options.grow_at.size() > static_cast<std::size_t>(options.spares)) {
    return fmt::format("--grow-at is given {} times, --spares is {}; start more spares",
                       options.grow_at.size(), options.spares);
  }
  if (options.min_workers > options.ranks) {
    return fmt::format("--min-workers is {}, --ranks is {}; start more ranks, or require fewer",
                       options.min_workers, options.ranks);
  }
  return {};
}

}  // namespace fastrun
