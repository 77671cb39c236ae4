#include "fast_train/rows.hpp"

#include "cli/program.hpp"
#include "fast_train/conditions.hpp"

namespace fast_train {

using namespace fast;
using namespace fast::options;

void add_exchange_rows(OptionTable& table, Options& o) {
  const Conditions only(o);
  table.group("exchange");
  table.add("exchange", o.exchange, choice({"hybrid", "shared", "local", "allreduce"}),
            "hybrid (shared windows within a host, remote ones between hosts), shared (one host "
            "only), local (threads) or allreduce (the baseline: gradients are averaged)");
  table
      .add("workers", o.workers, number<int>(one_or_more()),
           "threads to start, with --exchange local")
      .only_if([&o] { return o.exchange == "local"; },
               "threads are workers with --exchange local only; add that, or start as many ranks "
               "with mpiexec -n");
  table
      .add("spares", o.spares, number<int>(zero_or_more()),
           "the last so many ranks sleep until a worker is lost and then take its place [those of "
           "fastrun --spares, else 0]")
      .agreed()
      .only_if([&o] { return o.exchange != "local"; },
               "threads of one process end together; leave it out or take --exchange hybrid")
      .only_if(only.no_all_reduce(),
               "an all-reduce ends when a worker is lost; leave it out or take another rule");
}

void add_topology_rows(OptionTable& table, Options& o) {
  const Conditions only(o);
  table.group("topology");
  table
      .add("topology", o.topology, text(),
           "who averages with whom: a name, a .toml file, or auto: chosen by hosts, workers and "
           "algorithm, and on several hosts by measured links and steps")
      .offer(tools::topology_words({"auto"}))
      .only_if(only.neighbors(), no_neighbors);
  table
      .add("measure_s", o.measure_s, number<double>(zero_or_more()),
           "with --topology auto on several hosts, seconds for measuring the links, and half as "
           "many for steps; 0: the choice is by hosts, workers and algorithm alone")
      .only_if([&o] { return o.topology == "auto"; },
               "a topology that is named needs no measurement; leave it out or take --topology "
               "auto");
  table
      .add("no_placement", o.no_placement,
           "rank r is worker r of the topology, even if more edges then lie between hosts")
      .only_if(only.other_hosts(), one_host);
}

}  // namespace fast_train
