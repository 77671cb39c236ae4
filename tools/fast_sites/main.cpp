// fast-sites: looks at jobs at several places that train one model, and fetches it.
#include <string>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "fast_sites/commands.hpp"

namespace {

using namespace fast_sites;

constexpr char footer[] =
    "The program is no site: it takes no part in training, and needs no name. It ends with status "
    "1 if no site is there, or if what it waits for does not come in time. Files of logins and "
    "certificates can also be named by variables (FAST_NATS_CREDENTIALS_FILE, FAST_NATS_CA_FILE "
    "and others); docs/how-to/sites.md describes them.";

struct Options {
  Access access;
  StatusOptions status;
  WaitOptions wait;
  FetchOptions fetch;
};

void add_url(tools::Command& command, Access& access) {
  command
      .add_option("url", access.url,
                  "the NATS server and the run's name, as fast-train --site-url: "
                  "nats://HOST:PORT/RUN or tls://HOST:PORT/RUN")
      ->required();
}

void add_access(tools::Command& command, Access& access, const std::string& example) {
  command.begin_group("Login", example);
  tools::offer(command.add_option("--credentials", access.credentials_file,
                                  "the file of credentials that lets this program in"),
               {"<file>"});
  tools::offer(
      command.add_option("--ca", access.ca_file,
                         "a file of certificates that are trusted beside those of the system"),
      {"<file>"});
}

void add_timeout(tools::Command& command, double& timeout_s) {
  tools::restrict<double>(
      command.add_option("--timeout", timeout_s, "seconds after which it ends with status 1"),
      fast::options::positive());
}

tools::Command& add_status(tools::Command& program, Options& options) {
  tools::Command& command = program.add_command(
      "status", "Listens for 1.5 seconds, and prints a line for each site that is there.");
  add_url(command, options.access);
  command.begin_group("Output", "fast-sites status nats://127.0.0.1:4222/run7 --json");
  command.add_flag("--json", options.status.json, "print JSON");
  add_access(command, options.access,
             "fast-sites status tls://nats.example.org/run7 --credentials me.creds");
  return command;
}

tools::Command& add_wait(tools::Command& program, Options& options) {
  tools::Command& command =
      program.add_command("wait", "Ends when enough sites take part, and are far enough.");
  add_url(command, options.access);
  command.begin_group("Waiting",
                      "fast-sites wait nats://127.0.0.1:4222/run7 --sites 3 --round 100");
  tools::restrict<int>(command.add_option("--sites", options.wait.sites, "so many sites take part"),
                       fast::options::one_or_more());
  tools::restrict<std::int64_t>(
      command.add_option("--round", options.wait.round,
                         "so many sites have made so many rounds, those that have left since "
                         "too, and none that trains has made fewer"),
      fast::options::zero_or_more());
  add_timeout(command, options.wait.timeout_s);
  add_access(command, options.access,
             "fast-sites wait tls://nats.example.org/run7 --sites 3 --ca ca.pem");
  return command;
}

tools::Command& add_fetch(tools::Command& program, Options& options) {
  tools::Command& command =
      program.add_command("fetch", "Reads the model of a site that trains, and writes it.");
  add_url(command, options.access);
  command.begin_group("Model",
                      "fast-sites fetch nats://127.0.0.1:4222/run7 --out model.safetensors");
  tools::offer(
      command.add_option("--out", options.fetch.out, "the file to write: .safetensors")->required(),
      {"<file>"});
  command.add_option("--site", options.fetch.site,
                     "the site to read; without it, the one that has made most rounds, or another "
                     "one if that one goes");
  add_timeout(command, options.fetch.timeout_s);
  add_access(
      command, options.access,
      "fast-sites fetch tls://nats.example.org/run7 --out m.safetensors --credentials me.creds");
  return command;
}

int run(int argc, char** argv) {
  tools::Command program("fast-sites",
                         "Looks at jobs at several places that train one model, and fetches it.",
                         "fast-sites status nats://127.0.0.1:4222/run7");
  program.footer(footer);
  Options options;
  const tools::Command& status = add_status(program, options);
  const tools::Command& wait = add_wait(program, options);
  const tools::Command& fetch = add_fetch(program, options);
  if (const auto code = tools::parse(program, argc, argv)) return *code;
  if (status.parsed()) fast_sites::status(options.access, options.status);
  if (wait.parsed()) fast_sites::wait(options.access, options.wait);
  if (fetch.parsed()) fast_sites::fetch(options.access, options.fetch);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-sites", [&] { return run(argc, argv); });
}
