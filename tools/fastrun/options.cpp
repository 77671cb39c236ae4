#include "options.hpp"

#include "cli/program.hpp"

namespace fastrun {

void describe(CLI::App& app, Options& options, bool& doctor) {
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
  tools::offer(
      app.add_option(
          "--control", options.control,
          "a file for requests to the running job: after echo leave 2 >> FILE, rank 2 ends "
          "with status 0 and the others go on; after echo grow >> FILE, a spare joins as one "
          "worker more"),
      {"<file>"});
  app.add_option("--grow-at", options.grow_at,
                 "seconds after training began when a spare joins as one worker more; may be "
                 "repeated, --spares times at most")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false)
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", options.threads,
                 "OMP_NUM_THREADS and its kin for each rank; 0: the cores divided by the ranks");
  tools::offer(
      app.add_option("--mpiexec", options.mpiexec, "mpiexec of the MPI that FAST is built with"),
      {"<file>"});
  app.add_option("--mpiexec-option", options.mpiexec_options,
                 "passed on to mpiexec; may be repeated")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
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

}  // namespace fastrun
