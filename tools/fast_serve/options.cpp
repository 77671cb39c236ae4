#include "fast_serve/options.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>

#include "cli/command_line.hpp"
#include "core/message.hpp"
#include "core/numbers.hpp"

namespace fast_serve {

using namespace fast;
using namespace fast::options;

namespace {

constexpr char program[] = "fast-serve";
constexpr std::size_t most_held = 1000;  ///< messages, by all programs of one consumer

Fit read_time(std::string_view text, std::chrono::microseconds& into) {
  double factor = 0;
  std::string_view number = text;
  for (const auto& [unit, in_us] :
       {std::pair<std::string_view, double>{"us", 1}, {"ms", 1e3}, {"s", 1e6}}) {
    if (factor == 0 && text.ends_with(unit)) {
      factor = in_us;
      number = text.substr(0, text.size() - unit.size());
    }
  }
  double value = 0;
  if (factor == 0 || !reads(number, value)) return Fit::unreadable;
  if (!(value >= 0 && value * factor <= 1e7)) return Fit::out_of_range;
  into = std::chrono::microseconds(std::llround(value * factor));
  return Fit::good;
}

Value<std::chrono::microseconds> short_time() {
  return {.required = "a time from 0ms to 10s (2ms, 500us)",
          .parse = read_time,
          .format = [](const std::chrono::microseconds& time) -> std::optional<std::string> {
            const auto us = time.count();
            return us % 1000 == 0 ? fmt::format("{}ms", us / 1000) : fmt::format("{}us", us);
          }};
}

Range port_numbers() { return {.low = 0, .high = 65536, .text = "a {} from 0 to 65535"}; }
Range threads_in_all() { return {.low = 1, .high = 1025, .text = "a {} from 1 to 1024"}; }

Range messages_at_a_time() { return {.low = 1, .high = 10'001, .text = "a {} from 1 to 10000"}; }

void add_model_rows(OptionTable& table, Options& o) {
  table.group("models");
  table.add("split", o.split,
            "NAME=old:0.9,new:0.1: the version before the newest one keeps that share of the "
            "requests. If NAME is given twice, the first path is the old version. May be repeated");
  table.add("poll", o.poll_s, number<double>(positive()),
            "seconds between two looks for newer weights; a file is read once it has not changed "
            "for so long");
  table.add("model", o.model, text(),
            "for files that do not say it: the model's name, as fast-train --model takes it; "
            "without it, the tensors are recognized");
  table.add("normalize", o.normalize, text(),
            "for files that do not say it: MEAN:STDDEV, as the values of samples were normalized "
            "in training, or none");
}

void add_network_rows(OptionTable& table, Options& o) {
  table.group("network");
  table.add("listen", o.listen, text(),
            "address to listen on; 0.0.0.0: all. There is no encryption and no password");
  table.add("port", o.port, number<int>(port_numbers()), "port to listen on; 0: any, printed");
  table.add("connections", o.connections, number<int>(threads_in_all()),
            "connections at a time; more wait");
  table.add("max_request_bytes", o.max_request_bytes, number<std::size_t>(one_or_more()),
            "longest body of a request");
  table.add("max_instances", o.max_instances, number<std::size_t>(one_or_more()),
            "most samples of a request");
}

void add_stream_rows(OptionTable& table, Options& o) {
  table.group("streams");
  table.add("stream", o.stream, text(),
            "nats://HOST:PORT or tls://HOST:PORT: answers messages of a stream that this server "
            "keeps, beside "
            "requests over HTTP");
  table.add("subject", o.subject, text(), "subject of the messages");
  table.add("answers", o.answers, text(), "subject of the answers, which another stream keeps");
  table.add("stream_model", o.stream_model, text(),
            "name of the model that answers messages; needed if there are several models");
  table.add("consumer", o.consumer, text(),
            "name of the consumer at the server: programs of one name share the messages "
            "[fast-serve-MODEL]");
  table.add("stream_batch", o.stream_batch, number<std::size_t>(messages_at_a_time()),
            "messages in work at a time");
  table.add("ack_wait", o.ack_wait_s, number<double>(positive()),
            "seconds after which the server delivers a message again that is not acknowledged");
  table.add("stream_patience", o.stream_patience_s, number<double>(positive()),
            "seconds for which a lost connection is tried again");
}

void add_compute_rows(OptionTable& table, Options& o) {
  table.group("computing");
  table.add("max_batch", o.max_batch, number<std::size_t>(one_or_more()),
            "samples that are computed in one forward pass");
  table.add("max_delay", o.max_delay, short_time(),
            "how long a request waits for others, to be computed with them");
  table.add("threads", o.threads, number<int>(threads_in_all()),
            "forward passes at a time, each on one core");
}

void add_program_rows(OptionTable& table, Options& o) {
  table.group("program");
  table.add("grace", o.grace_s, number<double>(zero_or_more()),
            "seconds in which accepted requests are answered after SIGTERM or SIGINT");
  table.add("help", o.help, "print this text").also("h").command_line_only();
  table.add("help_markdown", o.help_markdown, "print the options as tables in Markdown")
      .command_line_only();
  table.add("version", o.version, "print the version").command_line_only();
}

/// "PATH" is named after the file, without its ending, or after the directory.
NamedPath named_path(const std::string& text) {
  const std::size_t equal = text.find('=');
  NamedPath named;
  if (equal == std::string::npos || text.find('/') < equal) {
    named.path = text;
    const auto whole = named.path.has_filename() ? named.path : named.path.parent_path();
    const auto path = whole == "." ? std::filesystem::current_path() : whole;
    std::error_code problem;
    const bool is_directory = std::filesystem::is_directory(path, problem);
    named.name = (is_directory ? path.filename() : path.stem()).string();
  } else {
    named = {text.substr(0, equal), text.substr(equal + 1)};
  }
  require(!named.name.empty() && !named.path.empty(), ErrorKind::argument,
          "\"{}\": NAME=PATH is required, with a file of weights or the directory of a run",
          printable(text));
  return named;
}

void check_models(const Options& o) {
  require(!o.models.empty(), ErrorKind::argument,
          "no model is given; add NAME=PATH, with a file of weights or the directory of a run");
  const auto all = splits(o);
  for (const NamedPath& each : o.models) {
    const auto same = std::ranges::count(o.models, each.name, &NamedPath::name);
    const bool is_split = std::ranges::any_of(
        all, [&](const serve::Split& split) { return split.model == each.name; });
    require(same == 1 || (same == 2 && is_split), ErrorKind::argument,
            "model {} is given {} times; choose other names, or give it twice with --split "
            "{}=old:0.9,new:0.1",
            printable(each.name), same, printable(each.name));
  }
}

}  // namespace

void add_rows(OptionTable& table, Options& o) {
  add_model_rows(table, o);
  add_network_rows(table, o);
  add_stream_rows(table, o);
  add_compute_rows(table, o);
  add_program_rows(table, o);
}

std::vector<tools::Group> groups() {
  return {
      {"models", "Models",
       "fast-serve digits=runs/old digits=runs/new --split digits=old:0.9,new:0.1"},
      {"network", "Network", "fast-serve digits=run --listen 0.0.0.0 --port 80"},
      {"streams", "Streams",
       "fast-serve digits=run --stream nats://127.0.0.1:4222 --subject images --answers labels"},
      {"computing", "Computing", "fast-serve digits=run --threads 4 --max-delay 500us"},
      {"program", "Program", "fast-serve digits=run --grace 30"},
  };
}

Options read_options(int argc, const char* const* argv) {
  Options o;
  OptionTable table;
  add_rows(table, o);
  std::vector<std::string> paths;
  tools::set(table, tools::parse_command_line(table, program, argc, argv, paths));
  if (o.help || o.help_markdown || o.version) return o;
  for (const std::string& path : paths) o.models.push_back(named_path(path));
  check_models(o);
  assumed_note(o);
  stream_plan(o);
  return o;
}

tools::Program command_line() {
  Options o;
  OptionTable table;
  add_rows(table, o);
  tools::Program described =
      tools::program_of(table, groups(), program,
                        "Answers requests over HTTP with trained models. A model is a file of "
                        "weights or the directory of a run.");
  described.usage = {"fast-serve NAME=PATH... [OPTIONS]", "fast-serve PATH [OPTIONS]"};
  described.example = "fast-serve digits=run";
  described.arguments.push_back(
      {.names = {"models"},
       .value = "NAME=PATH",
       .help = "a model as NAME=PATH: a file of weights, the directory of a run, or checkpoints. "
               "Without NAME, it has the name of the file or directory",
       .offers = {std::string(fast::options::files), std::string(fast::options::directories)},
       .is_repeated = true});
  return described;
}

std::vector<serve::Split> splits(const Options& o) {
  std::vector<serve::Split> all;
  for (const std::string& text : o.split) {
    const auto split = serve::read_split(text);
    require(split.has_value(), ErrorKind::argument,
            "--split: \"{}\"; NAME=old:0.9,new:0.1 is required, with shares that add up to 1",
            printable(text));
    const bool is_known = std::ranges::any_of(
        o.models, [&](const NamedPath& each) { return each.name == split->model; });
    require(is_known, ErrorKind::argument, "--split: there is no model {}; give its NAME=PATH",
            printable(split->model));
    for (const serve::Split& other : all) {
      require(other.model != split->model, ErrorKind::argument,
              "--split: model {} is given twice; give it once", printable(split->model));
    }
    all.push_back(*split);
  }
  return all;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return saturate_time<std::chrono::milliseconds>(Seconds(std::min(seconds, 1e6)));
}

namespace {

/// The only model, or the one of --stream-model.
std::string streamed_model(const Options& o) {
  const std::string& first = o.models.front().name;
  const bool is_only =
      std::ranges::all_of(o.models, [&](const NamedPath& each) { return each.name == first; });
  require(is_only || !o.stream_model.empty(), ErrorKind::argument,
          "--stream: there are several models; name one with --stream-model");
  if (o.stream_model.empty()) return first;
  const bool is_known = std::ranges::any_of(
      o.models, [&](const NamedPath& each) { return each.name == o.stream_model; });
  require(is_known, ErrorKind::argument, "--stream-model: there is no model {}; give its NAME=PATH",
          printable(o.stream_model));
  return o.stream_model;
}

/// Names of consumers have no dots.
std::string consumer_of(const Options& o, const std::string& model) {
  std::string name = o.consumer.empty() ? "fast-serve-" + model : o.consumer;
  if (o.consumer.empty()) std::ranges::replace(name, '.', '_');
  const bool good = std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
  require(good, ErrorKind::argument,
          "--consumer: \"{}\" cannot be a name; letters, digits, \"-\" and \"_\" are allowed",
          printable(name));
  return name;
}

void check_subjects(const Options& o) {
  require(!o.subject.empty() && !o.answers.empty(), ErrorKind::argument,
          "--stream: --subject and --answers are required, the subjects of messages and answers");
  require(stream::is_subject(o.subject, true), ErrorKind::argument,
          "--subject: \"{}\" is not a subject; names with dots between them are required",
          printable(o.subject));
  require(
      stream::is_subject(o.answers, false), ErrorKind::argument,
      "--answers: \"{}\" is not a subject; names with dots between them are required, without * "
      "and >",
      printable(o.answers));
  require(!stream::subject_matches(o.subject, o.answers), ErrorKind::argument,
          "--answers {}: answers would be messages of --subject {}; choose another subject",
          printable(o.answers), printable(o.subject));
}

}  // namespace

std::optional<StreamPlan> stream_plan(const Options& o) {
  if (o.stream.empty()) {
    require(o.subject.empty() && o.answers.empty(), ErrorKind::argument,
            "--subject and --answers are subjects of a stream; add --stream nats://HOST:PORT");
    return std::nullopt;
  }
  StreamPlan plan{stream::read_address(o.stream, "--stream"), {}, {}};
  require(plan.address.subject.empty(), ErrorKind::argument,
          "--stream: \"{}\" has a subject; give it with --subject", printable(plan.address.shown));
  check_subjects(o);
  const std::string model = streamed_model(o), consumer = consumer_of(o, model);
  plan.source = {o.subject, consumer,
                 std::max(milliseconds_of(o.ack_wait_s), std::chrono::milliseconds(1)),
                 std::max(most_held, 2 * o.stream_batch)};
  plan.scoring = {model, o.answers, consumer, o.stream_batch, {}};
  return plan;
}

serve::AssumedNote assumed_note(const Options& o) {
  if (o.normalize == "none") return {o.model, std::nullopt};
  const std::string_view text = o.normalize;
  const std::size_t colon = std::min(text.find(':'), text.size());
  float mean = 0, stddev = 0;
  require(colon < text.size() && reads(text.substr(0, colon), mean) &&
              reads(text.substr(colon + 1), stddev) && std::isfinite(mean) &&
              std::isfinite(stddev) && stddev > 0,
          ErrorKind::argument, "--normalize: \"{}\"; MEAN:STDDEV (0.286:0.353) or none is required",
          printable(text));
  return {o.model, data::Normalization{{mean}, {stddev}}};
}

}  // namespace fast_serve
