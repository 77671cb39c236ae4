#include "fast_train/rows.hpp"

namespace fast_train {

using namespace fast;
using namespace fast::options;

namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20U;

Value<std::size_t> megabytes() {
  return {.kind = Kind::integer,
          .required = "a whole number of megabytes, at least 1,",
          .parse =
              [](std::string_view text, std::size_t& bytes) {
                std::int64_t count = 0;
                if (!reads(text, count) || count < 1 || count > 1'000'000) return Fit::unreadable;
                bytes = static_cast<std::size_t>(count) * megabyte;
                return Fit::good;
              },
          .format = [](const std::size_t& bytes) -> std::optional<std::string> {
            return fmt::format("{}", bytes / megabyte);
          }};
}

Fit read_rounds(std::string_view text, observe::TraceOptions& into) {
  const std::size_t colon = text.find(':');
  std::int64_t first = 0, last = 0;
  const bool good = colon != std::string_view::npos && reads(text.substr(0, colon), first) &&
                    reads(text.substr(colon + 1), last) && first >= 0 && first <= last;
  if (!good) return Fit::unreadable;
  into.first_round = first;
  into.last_round = last;
  return Fit::good;
}

Value<observe::TraceOptions> trace_rounds() {
  return {.required = "FIRST:LAST (1000:1200)",
          .parse = read_rounds,
          .format = [](const observe::TraceOptions& rounds) -> std::optional<std::string> {
            if (rounds.last_round == observe::TraceOptions{}.last_round) return std::nullopt;
            return fmt::format("{}:{}", rounds.first_round, rounds.last_round);
          }};
}

}  // namespace

void add_output_rows(OptionTable& table, Options& o) {
  table.group("output");
  table
      .add("run_name", o.run_name, text(),
           "write to runs/NAME as --out would; auto: a new name of time, model, topology and "
           "workers")
      .command_line_only();
  table.add("summary_json", o.summary_json, text(), "file for the closing table as JSON")
      .offer({std::string(files)});
  const auto has_out = [&o] { return o.trainer.out.has_value(); };
  constexpr char needs_out[] = "its files need a directory; add --out DIRECTORY";
  table
      .add("tensorboard", o.tensorboard,
           "write event files for TensorBoard to OUT/tensorboard, a directory for each worker")
      .only_if(has_out, needs_out);
  table.add("trace", o.trace, "write timelines for ui.perfetto.dev to OUT/traces (see fast-trace)")
      .only_if(has_out, needs_out);
  constexpr char needs_trace[] = "this run writes no timeline; add --trace or leave it out";
  table
      .add("trace_size", o.trace_options.size_bytes, megabytes(),
           "megabytes of the newest events that each worker keeps")
      .only_if([&o] { return o.trace; }, needs_trace);
  table
      .add("trace_rounds", o.trace_options, trace_rounds(),
           "rounds in the timeline, FIRST:LAST; without it, all")
      .only_if([&o] { return o.trace; }, needs_trace);
  table.add(
      "metrics_port", o.metrics_port,
      number<int>({.low = 0, .high = 65536, .text = "a {} from 0 to 65535"}),
      "serve metrics to Prometheus: worker 0 at this port, worker r at this port + r; 0: none");
  table
      .add("metrics_listen", o.metrics_listen, text(),
           "address of --metrics-port; 0.0.0.0: all, without a password")
      .only_if([&o] { return o.metrics_port > 0; },
               "this run serves no metrics; add --metrics-port or leave it out");
  table.add("quiet", o.quiet, "no opening table and progress, only the closing table");
}

void add_program_rows(OptionTable& table, Requests& requests) {
  table.group("program");
  table
      .add("config", requests.config, text(),
           "a TOML file of options; options of the command line win")
      .offer({std::string(files)})
      .command_line_only();
  table
      .add("write_config", requests.write_config, text(),
           "write all options to a file for --config, and do not train")
      .offer({std::string(files)})
      .command_line_only();
  table
      .add("describe", requests.describe,
           "print each layer of the model with the shape of its output and the number of its "
           "parameters, and do not train")
      .command_line_only();
  table.add("help", requests.help, "print this text").also("h").command_line_only();
  table
      .add("help_markdown", requests.help_markdown, "print options and rules as tables in Markdown")
      .command_line_only();
  table.add("version", requests.version, "print the version").command_line_only();
}

}  // namespace fast_train
