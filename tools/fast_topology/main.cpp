// fast-topology: which topologies there are, what they promise, and what they look like.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command_line.hpp"
#include "cli/run_ranks.hpp"
#include "core/message.hpp"
#include "fast_topology/commands.hpp"
#include "fast_topology/plan.hpp"
#include "mpi/process_manager.hpp"

using namespace fast;

namespace {

constexpr Seconds parse_limit{60};

/// Rank 0 parses first, so that what is wrong is said once.
std::optional<int> parse(tools::Command& program, int argc, char** argv,
                         const mpi::Communicator* world) {
  if (world == nullptr) return tools::parse(program, argc, argv);
  std::optional<int> status;
  if (world->rank() == 0) status = tools::parse(program, argc, argv);
  const auto all = world->all_gather(status ? std::to_string(*status) : "", Deadline(parse_limit),
                                     "reading options");
  if (!all.front().empty()) return std::stoi(all.front());
  return world->rank() == 0 ? std::nullopt : tools::parse(program, argc, argv);
}

/// `world`: the ranks that measure a cluster.
int run(int argc, char** argv, const mpi::Communicator* world = nullptr) {
  tools::Command program("fast-topology",
                         "Shows which topologies there are, what they promise and what they look "
                         "like.",
                         "fast-topology compare ring torus2d -n 16");
  fast_topology::Options options;
  const tools::Command& list =
      program.add_command("list", "Lists all names.", "fast-topology list");
  tools::Command& show = program.add_command("show", "Shows figures and pictures of one topology.");
  fast_topology::add_show_options(show, options);
  tools::Command& compare =
      program.add_command("compare", "Compares topologies in a table, best first.");
  fast_topology::add_compare_options(compare, options);
  tools::Command& check = program.add_command("check", "Reads files and says what is wrong.");
  fast_topology::add_check_options(check, options);
  const fast_topology::PlanCommand plan = fast_topology::add_plan(program);
  if (const auto status = parse(program, argc, argv, world)) return *status;
  if (plan.command.parsed()) plan.run(world);
  if (list.parsed()) fast_topology::list();
  if (show.parsed()) fast_topology::show(options);
  if (compare.parsed()) fast_topology::compare(options);
  return !check.parsed() || fast_topology::check(options) ? 0 : 1;
}

bool asks_to_measure(const char* argument) {
  const std::string_view text(argument);
  return text == "--measure" || text.starts_with("--measure=");
}

/// Of a plan without a measurement, which mpiexec may start, too: all ranks have the same one.
bool is_one_too_many(int argc, char** argv) {
  const auto started = mpi::started();
  return argc > 1 && std::string_view(argv[1]) == "plan" && started && started->rank > 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-topology", [&] {
    if (!std::any_of(argv + 1, argv + argc, asks_to_measure)) {
      return is_one_too_many(argc, argv) ? 0 : run(argc, argv);
    }
    return tools::run_ranks(
        argc, argv, [&](const mpi::Communicator& world) { return run(argc, argv, &world); });
  });
}
