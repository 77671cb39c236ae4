// fastrun: starts the ranks of a job so that those that live go on when one dies.
//
// mpiexec runs one wrapper a rank, which runs the program as its child. The process manager ends a
// job when a rank goes without farewell; the wrappers never go before all ranks have ended. It also
// gives up when a whole host is lost; the wrappers then go on without it, in sessions of their own.

#include <exception>
#include <fast/core/error.hpp>

#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "core/message.hpp"
#include "fastrun/fastrun.hpp"
#include "fastrun/host.hpp"
#include "fastrun/starter.hpp"

namespace {

/// One error in place of one for each rank. Other hosts, and a script in place of mpiexec, may have
/// a program that this process does not find.
void check_program(const fastrun::Options& options) {
  const bool is_usual = options.mpiexec == fastrun::Options().mpiexec;
  if (!is_usual || !fastrun::is_on_one_host(options)) return;
  const std::string why = fastrun::why_not_startable(options.program.front());
  fast::require(why.empty(), fast::ErrorKind::argument, "fastrun: {} cannot be started ({})",
                options.program.front(), why);
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--wrap") {
    return fastrun::wrap({argv + 2, argv + argc});
  }
  fastrun::Options options;
  bool doctor = false;
  tools::Command command("fastrun",
                         "Starts the ranks of a job. When a rank dies, the others go on.",
                         "fastrun -n 8 ./program arguments...");
  fastrun::describe(command, options, doctor);
  fastrun::take_np_for_n(command, argc, argv);
  if (const auto status = tools::parse(command, argc, argv)) return *status;
  options.program = command.remaining();
  const bool begins_with_option = !options.program.empty() && options.program[0].starts_with("-");
  if (begins_with_option && options.program[0] != "--") {
    fast::say("fastrun: {}\n", tools::unknown_option(command, options.program[0]));
    return tools::wrong_usage;
  }
  if (!options.program.empty() && options.program.front() == "--") {
    options.program.erase(options.program.begin());
  }
  if (doctor) return fastrun::examine(options);
  if (options.program.empty()) {
    fast::say("fastrun: no program given; fastrun -n 8 ./program arguments...\n");
    return tools::wrong_usage;
  }
  if (const std::string wrong = fastrun::contradiction(options); !wrong.empty()) {
    fast::say("fastrun: {}\n", wrong);
    return tools::wrong_usage;
  }
  check_program(options);
  return fastrun::launch(options);
}

}  // namespace

int main(int argc, char** argv) try {
  tools::fill_streams();
  return tools::with_output(run(argc, argv));
} catch (const std::exception& error) {
  fast::say("{}\n", error.what());
  return tools::failed;
}
