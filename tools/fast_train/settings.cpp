#include "fast_train/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fast/core/message.hpp>
#include <fast/fast.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <functional>

#include "backends/backends.hpp"
#include "backends/registry.hpp"

namespace fast_train {

using namespace fast;

namespace {

/// True when all of `text` is a number.
template <class Number>
bool reads(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

train::Arena arena_of(const std::string& text) {
  if (text == "fixed") return train::Arena::fixed;
  require(text == "rotating", ErrorKind::argument, "--arena: \"{}\"; choose fixed or rotating",
          text);
  return train::Arena::rotating;
}

std::int64_t staleness_of(const std::string& text) {
  if (text == "inf") return unbounded_staleness;
  std::int64_t value = -1;
  require(reads(text, value) && value >= 0, ErrorKind::argument,
          "--staleness: \"{}\"; a number of rounds, 0 or more, or inf is required", text);
  return value;
}

RemotePathChoice remote_path_of(const std::string& text) {
  if (text == "measured") return RemotePathChoice::measured;
  if (text == "pull") return RemotePathChoice::pull;
  require(text == "two_sided", ErrorKind::argument,
          "--remote-path: \"{}\"; choose measured, two_sided or pull", text);
  return RemotePathChoice::two_sided;
}

std::optional<std::int64_t> closing_rounds_of(const std::string& text) {
  if (text == "auto") return std::nullopt;
  std::int64_t rounds = -1;
  require(reads(text, rounds) && rounds >= 0, ErrorKind::argument,
          "--closing-rounds: \"{}\"; a number of rounds, 0 or more, or auto is required", text);
  return rounds;
}

train::CheckpointOptions checkpoints_of(const Options& o) {
  train::CheckpointOptions checkpoints;
  if (!o.checkpoints.empty()) checkpoints.directory = o.checkpoints;
  if (!o.resume.empty()) checkpoints.resume = o.resume;
  checkpoints.keep = o.keep;
  checkpoints.strict = o.strict;
  std::string_view text = o.checkpoint_every;
  if (text.empty()) return checkpoints;
  const double unit_s = text.ends_with("min") ? 60 : text.ends_with("s") ? 1 : 0;
  if (unit_s > 0) text.remove_suffix(unit_s == 60 ? 3 : 1);
  const bool good = unit_s > 0
                        ? reads(text, checkpoints.every_s) && checkpoints.every_s > 0
                        : reads(text, checkpoints.every_rounds) && checkpoints.every_rounds > 0;
  require(good, ErrorKind::argument,
          "--checkpoint-every: \"{}\"; a number of rounds or a time (90s, 10min) is required",
          o.checkpoint_every);
  checkpoints.every_s *= unit_s;
  return checkpoints;
}

train::Pace pace_of(const Options& o) {
  train::Pace pace;
  pace.step_s = o.step_ms / 1000;
  if (o.slow.empty()) return pace;
  const std::string_view text = o.slow;
  const std::size_t colon = std::min(text.find(':'), text.size() - 1);
  require(reads(text.substr(0, colon), pace.slow_worker) &&
              reads(text.substr(colon + 1), pace.slow_factor) && pace.slow_worker >= 0,
          ErrorKind::argument, "--slow: \"{}\"; RANK:FACTOR is required (2:4)", o.slow);
  return pace;
}

/// "mlp:A-B-...": the hidden layers' widths.
std::vector<std::int64_t> widths_of(const std::string& name, int classes) {
  std::vector<std::int64_t> widths{784};
  for (std::size_t begin = 4; begin <= name.size();) {
    const std::size_t end = std::min(name.find('-', begin), name.size());
    std::int64_t width = 0;
    require(reads(std::string_view(name).substr(begin, end - begin), width) && width > 0,
            ErrorKind::argument,
            "--model: \"{}\"; widths of hidden layers are required (mlp:512-256)", name);
    widths.push_back(width);
    begin = end + 1;
  }
  widths.push_back(classes);
  return widths;
}

std::int64_t hidden_of(const std::string& name) {
  std::int64_t hidden = 0;
  require(reads(std::string_view(name).substr(5), hidden) && hidden > 0, ErrorKind::argument,
          "--model: \"{}\"; a number of hidden units is required (lstm:128)", name);
  return hidden;
}

nn::ModelSpec model_of(const std::string& name, int classes) {
  if (name == "lenet") return nn::lenet5(classes);
  if (name == "mlp") return nn::mlp({784, 256, classes});
  if (name == "resnet20") return nn::resnet20(classes);
  if (name == "resnet50") return nn::resnet50(classes);
  if (name == "lstm") return nn::lstm(64, classes);
  if (name.starts_with("lstm:")) return nn::lstm(hidden_of(name), classes);
  if (name.starts_with("mlp:")) return nn::mlp(widths_of(name, classes));
  fail(ErrorKind::argument,
       "--model: \"{}\" is unknown; choose lenet, mlp, mlp:A-B-..., lstm, lstm:HIDDEN, "
       "resnet20 or resnet50",
       name);
}

algorithm::Rule rule_of(const Options& o) {
  return algorithm::by_name(o.algorithm, algorithm::parameters_from(o.algorithm_options));
}

nn::OptimizerSpec optimizer_of(const Options& o) {
  nn::OptimizerSpec spec = nn::optimizer_spec(o.optimizer);
  std::visit(
      [&](auto& options) {
        options.learning_rate = o.learning_rate.value_or(options.learning_rate);
        options.weight_decay = o.weight_decay.value_or(options.weight_decay);
      },
      spec);
  if (auto* sgd = std::get_if<nn::SgdOptions>(&spec)) {
    sgd->momentum = *momentum_of(o);
    sgd->nesterov = o.nesterov;
  } else {
    auto& adam = std::get<nn::AdamOptions>(spec);
    adam.beta1 = o.beta1.value_or(adam.beta1);
    adam.beta2 = o.beta2.value_or(adam.beta2);
  }
  return spec;
}

/// What the workers must have in common of their optimizers.
std::string agreement(const Options& o) {
  return fmt::format(
      "optimizer {}\nmomentum {}\nnesterov {}\nbeta1 {}\nbeta2 {}\nweight decay {}\n"
      "clip norm {}\naccumulate {}\n",
      o.optimizer, momentum_of(o).value_or(-1), o.nesterov, o.beta1.value_or(-1),
      o.beta2.value_or(-1), o.weight_decay.value_or(-1), o.clip_norm, o.accumulate);
}

}  // namespace

/// Images are not resized: what a model sees should be what was chosen for it.
nn::ModelSpec model_for(const Options& o, const data::Dataset& data) {
  nn::ModelSpec spec = model_of(o.model, data.classes());
  require(nn::takes(spec, data.sample_shape()), ErrorKind::argument,
          "--model {}: it takes samples of shape {}, those of --data {} are {}; choose another "
          "model, or images of that size (they are not resized)",
          o.model, nn::describe(spec.input), o.data, nn::describe(data.sample_shape()));
  return spec;
}

bool is_all_reduce(const Options& o) {
  return o.exchange == "allreduce" || o.algorithm == "allreduce";
}

bool brings_momentum(const Options& o) {
  return !is_all_reduce(o) && rule_of(o).declaration().needs_learning_rate;
}

std::optional<double> momentum_of(const Options& o) {
  if (o.optimizer != "sgd") return std::nullopt;
  return o.momentum.value_or(brings_momentum(o) ? 0 : nn::SgdOptions{}.momentum);
}

/// The index of "cuda:INDEX"; empty for cuda, of whatever index.
std::optional<int> gpu_of(const std::string& device) {
  if (device == "cuda") return std::nullopt;
  int index = -1;
  require(
      device.starts_with("cuda:") && reads(std::string_view(device).substr(5), index) && index >= 0,
      ErrorKind::argument, "--device: \"{}\" is unknown; choose cpu, cuda or cuda:INDEX", device);
  return index;
}

/// Batches made ahead.
std::size_t prefetch_of(const Options& o) {
  return static_cast<std::size_t>(o.prefetch.value_or(o.device == "cpu" ? 0 : 2));
}

backends::OnDevice backend_of(const Options& o, const data::Dataset& data, const Group& group) {
  const nn::ModelSpec spec = model_for(o, data);
  const nn::BackendOptions options{optimizer_of(o), o.clip_norm, o.accumulate, o.threads};
  if (o.device != "cpu") {
    const std::optional<int> gpu = gpu_of(o.device);
    require(o.backend == "nn", ErrorKind::argument,
            "--device {}: only nn's models run there; leave --backend {} out, or take --device cpu",
            o.device, o.backend);
    return backends::make_cuda(spec, o.seed, options,
                               {gpu, group.rank(), group.hosts(), o.precision, o.autotune, o.graph,
                                o.deterministic, prefetch_of(o) > 0});
  }
  return {backends::by_name(o.backend).make(spec, o.seed, options), ""};
}

double learning_rate_of(const Options& o) {
  return std::visit([](const auto& spec) { return spec.learning_rate; }, optimizer_of(o));
}

TopologyRule topology_of(const std::string& name, const std::vector<int>& hosts) {
  const bool several =
      std::adjacent_find(hosts.begin(), hosts.end(), std::not_equal_to<>()) != hosts.end();
  if (several && name == "hierarchical") return graph::hierarchical(stencil::ring(), hosts);
  return topology_from(name);
}

train::TrainerOptions trainer_options(const Options& o) {
  train::TrainerOptions trainer;
  trainer.epochs = o.epochs;
  trainer.batch_size = static_cast<std::size_t>(o.batch_size * o.accumulate);
  trainer.seed = o.seed;
  if (o.augment) trainer.augmentation.emplace();
  trainer.prefetch.ahead = prefetch_of(o);
  trainer.prefetch.deadline = Seconds(o.deadline_s);
  trainer.loader_threads = o.loader_threads;
  trainer.shards = data::sharding_from(o.shards);
  trainer.take_over = o.take_over;
  trainer.learning_rate = {learning_rate_of(o), train::learning_rate_schedule(o.schedule),
                           o.warmup_epochs};
  trainer.all_reduce = is_all_reduce(o);
  if (!o.out.empty()) trainer.out = o.out;
  trainer.overwrite = o.overwrite;
  trainer.progress = !o.quiet;
  trainer.placement = !o.no_placement;
  trainer.momentum = momentum_of(o);
  trainer.evaluate_every = o.evaluate_every;
  trainer.closing_rounds = closing_rounds_of(o.closing_rounds);
  trainer.validation = o.validation;
  trainer.patience = o.patience;
  trainer.ema_decay = o.ema;
  trainer.checkpoints = checkpoints_of(o);
  trainer.pace = pace_of(o);
  trainer.worker.algorithm = rule_of(o);
  trainer.worker.codec = codec::by_name(o.codec);
  trainer.arena = arena_of(o.arena);
  trainer.worker.staleness = staleness_of(o.staleness);
  trainer.worker.remote_path = remote_path_of(o.remote_path);
  trainer.worker.remote_bytes_per_s = o.remote_rate * 1e6 / 8;
  trainer.worker.deadline = Seconds(o.deadline_s);
  trainer.worker.rejoin_after = o.rejoin_after;
  trainer.worker.not_finite = o.nan == "heal" ? NotFinite::heal : NotFinite::abort;
  trainer.worker.suspect_after = Seconds(o.suspect_after_s);
  trainer.worker.must_agree = fmt::format("data {}\nsamples {}\naugment {}\nmodel {}\n", o.data,
                                          o.samples, o.augment, o.model) +
                              agreement(o);
  trainer.worker.log = [](LogLevel, std::string_view text) {
    std::fprintf(stderr, "\n%s\n", printable(text, Newlines::keep).c_str());
  };
  return trainer;
}

}  // namespace fast_train
