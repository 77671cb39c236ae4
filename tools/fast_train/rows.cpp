#include "fast_train/rows.hpp"

#include "cli/program.hpp"
#include "data/options/rows.hpp"
#include "train/options/rows.hpp"

namespace fast_train {

using namespace fast;
using namespace fast::options;

namespace {

/// `high` counts.
Range up_to(double high, std::string_view text) {
  return {.low = 0, .high = std::nextafter(high, high + 1), .text = text};
}

}  // namespace

void add_data_rows(OptionTable& table, Options& o) {
  table.group("data");
  table
      .add(
          "data", o.data, text(),
          "fashion-mnist, digits (small, comes with the programs), a file (.csv, .tsv, .npz, "
          ".npy), "
          "shards (\"train-*.tar\"), or a directory with shards, images in folders "
          "(train/<class>/*.png or .jpg), the binary files of CIFAR-10 or CIFAR-100, .npy files or "
          "four IDX files (plain or .gz); or a stream of samples (nats:// or "
          "tls://HOST:PORT/SUBJECT), with --samples and --test-data")
      .offer({"fashion-mnist", "digits", std::string(files), std::string(directories)})
      .agreed();
  data::add_rows(table, o.load);
  data::add_limit(table, o.load);
  table
      .add("augment", o.augment,
           "train on crops of images padded by 4; every other image is mirrored")
      .agreed();
  table
      .add("rotate", o.rotate, number<double>(up_to(180, "a {} from 0 to 180")),
           "train on images turned by up to so many degrees")
      .agreed();
  table
      .add("color_jitter", o.color_jitter, number<double>(up_to(1, "a {} from 0 to 1")),
           "train on images whose contrast, saturation and brightness differ by up to this share")
      .agreed();
  table
      .add("erase", o.erase, number<double>(up_to(1, "a {} from 0 to 1")),
           "probability that a rectangle of a training image is erased")
      .agreed();
  table.add("prefetch", o.prefetch, options::optional(number<int>(zero_or_more())),
            "batches that a thread makes ahead of training [2 for GPUs and streams, else 0]");
}

void add_model_rows(OptionTable& table, Options& o) {
  table.group("model");
  table
      .add(
          "model", o.model, text(),
          "lenet (61,706 parameters), mlp (784-256-10; for --data digits the default), mlp:A-B-... "
          "(hidden widths), lstm (24,458; reads 28x28 images row by row), lstm:HIDDEN, resnet20 "
          "(272,474, 32x32 color images), resnet50 (224x224 color images), or a TOML file of "
          "layers "
          "(FILE.toml)")
      .offer({"lenet", "mlp", "lstm", "resnet20", "resnet50", std::string(files)})
      .agreed();
  std::vector<std::pair<std::string, nn::Loss>> losses;
  for (const nn::Loss loss : nn::all_losses) losses.emplace_back(nn::name(loss), loss);
  table
      .add(
          "loss", o.loss, options::optional(choice(losses)),
          "cross_entropy (class labels, one a sample or one a step), mse or huber (float targets), "
          "or binary_cross_entropy (labels 0 and 1 by one output, or targets from 0 to 1) "
          "[cross_entropy for labels, mse for float targets]")
      .agreed();
  table
      .add("huber_delta", o.huber_delta, number<double>(positive()),
           "difference from the target beyond which --loss huber grows linearly")
      .agreed()
      .only_if([&o] { return o.loss == nn::Loss::huber; },
               "it is an option of --loss huber; leave it out or take that loss");
  table
      .add("scale_targets", o.load.scale_targets,
           "learn float targets less their mean, divided by their standard deviation; predictions, "
           "and the mae and rmse of one target, stay in the units of the data")
      .agreed()
      .only_if([&o] { return !o.loss || o.loss == nn::Loss::mse || o.loss == nn::Loss::huber; },
               "it is an option of --loss mse and huber; leave it out or take one of these")
      .only_if([&o] { return !is_stream(o); },
               "samples of a stream have no mean yet; scale the targets that are published");
  const auto has_classes = [&o] {
    return o.loss.value_or(nn::Loss::cross_entropy) == nn::Loss::cross_entropy;
  };
  constexpr char classes_only[] =
      "it is an option of --loss cross_entropy; leave it out or take that loss";
  table
      .add("label_smoothing", o.label_smoothing, number<double>(fraction()),
           "share of each label that is spread over all classes, in training")
      .agreed()
      .only_if(has_classes, classes_only);
  table
      .add("class_weights", o.class_weights, text(),
           "weights of the classes' losses in training: one a class, with commas between them, or "
           "balanced: samples / (classes * samples of the class)")
      .offer({"balanced"})
      .agreed()
      .only_if(has_classes, classes_only)
      .only_if([&o] { return o.class_weights != "balanced" || !is_stream(o); },
               "classes of a stream cannot be counted; give numbers");
  table
      .add("init_weights", o.init_weights, text(),
           "begin with the weights of another model: a safetensors file, a run's directory or a "
           "checkpoint. Tensors of the same name and shape are taken; others begin anew")
      .offer({std::string(files)})
      .agreed()
      .only_if([&o] { return !o.trainer.checkpoints.resume.has_value(); },
               "a run that resumes goes on with the weights of its checkpoint; leave one of "
               "--init-weights and --resume out");
  table
      .add("init_map", o.init_map, text(),
           "with --init-weights, a file of names that differ: THEIR.NAME OUR.NAME, a line a tensor")
      .offer({std::string(files)})
      .agreed()
      .only_if([&o] { return !o.init_weights.empty(); },
               "it names tensors of --init-weights; add that, or leave it out");
  table.add("backend", o.backend, choice({"nn", "torch", "dlib"}),
            "what computes the model: nn (the library's own), torch (LibTorch) or dlib");
}

void add_device_rows(OptionTable& table, Options& o) {
  const Conditions only(o);
  table.group("device");
  table
      .add("device", o.device, text(),
           "what this worker computes on: cpu, cuda (the workers of a host take its GPUs in turn) "
           "or cuda:INDEX; workers need not agree")
      .offer({"cpu", "cuda"});
  table
      .add("threads", o.threads, number<int>(one_or_more()),
           "cores that each worker computes and averages on")
      .only_if(only.on_cpu(),
               "it is a number of cores, and this worker computes on a GPU; leave it out "
               "(--loader-threads make its batches) or take --device cpu");
  table
      .add("precision", o.precision, choice({"f32", "tf32", "bf16"}),
           "on GPUs: f32, tf32 (factors of products are rounded) or bf16 (outputs of layers are "
           "rounded too; weights stay f32)")
      .only_if(only.on_gpu(), gpu_only);
  table
      .add("autotune", o.autotune,
           "on GPUs, measure ways to compute layers for 10 s at most; keep the fastest")
      .only_if(only.on_gpu(), gpu_only)
      .only_if([&o] { return !o.deterministic; },
               "with --deterministic no way to a convolution is chosen by the clock; leave one of "
               "the two out");
  table.add("cuda_graph", o.graph, "on GPUs, launch a whole step at once")
      .only_if(only.on_gpu(), gpu_only);
  table
      .add("deterministic", o.deterministic,
           "on GPUs, leave out ways to compute convolutions whose results differ in their last "
           "bits from run to run")
      .only_if(
          only.on_gpu(),
          "runs on the CPU are deterministic anyway; leave the option out or take --device cuda");
}

using namespace fast;
using namespace fast::options;

namespace {

constexpr char sgd_only[] =
    "it is an option of sgd; leave it out (--beta1 is the momentum of adam and adamw) or take "
    "--optimizer sgd";
constexpr char adam_only[] =
    "it is an option of adam and adamw; leave it out (--momentum is sgd's) or take one of these";

void add_moment_rows(OptionTable& table, Options& o) {
  const Conditions only(o);
  const auto decay = options::optional(number<double>(fraction()));
  table
      .add("momentum", o.momentum, decay,
           "momentum of sgd [0.9, or 0 for rules that bring their own]")
      .agreed()
      .only_if(only.sgd(), sgd_only);
  table.add("nesterov", o.nesterov, "Nesterov's form of sgd's momentum")
      .agreed()
      .only_if(only.sgd(), sgd_only);
  table.add("beta1", o.beta1, decay, "decay of the first moment of adam and adamw [0.9]")
      .agreed()
      .only_if(only.adam(), adam_only);
  table.add("beta2", o.beta2, decay, "decay of the second moment of adam and adamw [0.999]")
      .agreed()
      .only_if(only.adam(), adam_only);
}

}  // namespace

void add_optimizer_rows(OptionTable& table, Options& o) {
  table.group("optimizer");
  train::add_batch_size(table, o.batch_size);
  table
      .add("accumulate", o.accumulate, number<int>(one_or_more()),
           "batches whose gradients are averaged for one step (and one round)")
      .agreed();
  table.add("optimizer", o.optimizer, choice({"sgd", "adam", "adamw"}), "sgd, adam or adamw")
      .agreed();
  train::add_learning_rate(table, o.learning_rate, "0.05 for sgd, 0.001 for adam and adamw");
  table
      .add("clip_norm", o.clip_norm, number<double>(zero_or_more()),
           "scale gradients of a larger norm down to it; 0: leave them")
      .agreed();
  table
      .add("weight_decay", o.weight_decay, options::optional(number<double>(zero_or_more())),
           "weight decay [0.01 for adamw, else 0]")
      .agreed();
  add_moment_rows(table, o);
}

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
