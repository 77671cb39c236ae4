#include "fast_train/settings.hpp"

#include <array>
#include <ctime>
#include <fast/core/version.hpp>
#include <fast/fast.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/observe/prometheus.hpp>
#include <fast/observe/tensorboard.hpp>
#include <fast/observe/trace.hpp>
#include <functional>

#include "backends/backends.hpp"
#include "backends/registry.hpp"
#include "core/host.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"
#include "core/toml.hpp"
#include "fast_train/mean_model_figures.hpp"
#include "fast_train/read_options.hpp"
#include "fast_train/stream_data.hpp"
#include "fast_train/targets.hpp"
#include "nn/checks.hpp"
#include "nn/shape.hpp"

namespace fast_train {

using namespace fast;

using options::OptionTable;

namespace {

/// What the data requires.
struct Task {
  nn::LossSpec loss;
  nn::Shape sample, output;
  bool per_step() const { return output.size() == 2; }
};

nn::ModelSpec model_of(const std::string& name, const Task& task) {
  const std::int64_t outputs = task.output.back();
  if (name.ends_with(".toml")) return nn::read_model(name, {task.sample, outputs});
  return nn::model_by_name(name, outputs, task.sample, task.per_step());
}

/// Float targets are as many outputs. Labels are the classes' logits, for each step if there are
/// several a sample.
Task task_of(const Options& o, const data::Dataset& data) {
  const bool labels = data.targets().empty();
  Task task{{o.loss.value_or(labels ? nn::Loss::cross_entropy : nn::Loss::mse), o.huber_delta},
            data.sample_shape(),
            {static_cast<std::int64_t>(data.target_size())}};
  const std::string_view loss = nn::name(task.loss.kind);
  if (task.loss.kind == nn::Loss::cross_entropy) {
    require(labels, ErrorKind::argument,
            "--loss {}: the samples of --data {} have float targets; choose mse or huber", loss,
            shown_data(o));
    if (data.target_shape().empty()) task.output.clear();
    task.output.push_back(data.classes());
  } else if (task.loss.kind == nn::Loss::binary_cross_entropy) {
    require(!labels || data.classes() <= 2, ErrorKind::argument,
            "--loss {}: --data {} has {} classes; it takes 2, choose cross_entropy", loss,
            shown_data(o), data.classes());
  } else {
    require(!labels, ErrorKind::argument,
            "--loss {}: the samples of --data {} have class labels; choose cross_entropy", loss,
            shown_data(o));
  }
  return task;
}

/// Where and when a run began, as comments.
std::string heading_of_config() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 64> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M:%S %z", std::localtime(&now));
  return fmt::format("# fast-train {}, commit {}, {}, {}\n# started {} on {}\n", version(),
                     commit(), compiler(), mpi::library_version(), time.data(), host_name());
}

/// The writers of files that are asked for.
std::shared_ptr<Observer> observer_of(const Options& o, int worker, const LogSink& log) {
  std::vector<std::shared_ptr<Observer>> observers;
  if (o.tensorboard) {
    observers.push_back(observe::tensorboard(
        *o.trainer.out / "tensorboard" / fmt::format("worker-{}", worker), log));
    if (worker == 0) {
      observers.push_back(mean_model_figures(
          observe::tensorboard(*o.trainer.out / "tensorboard" / "mean-model", log)));
    }
  }
  if (o.trace) {
    observers.push_back(observe::trace(*o.trainer.out / "traces", worker, o.trace_options, log));
  }
  if (o.metrics_port > 0) {
    try {
      observers.push_back(observe::prometheus(o.metrics_port + worker, worker, o.metrics_listen));
    } catch (const Error& error) {
      log(LogLevel::warning, fmt::format("{}; training goes on without them", error.what()));
    }
  }
  return all_of(std::move(observers));
}

/// Empty for models by name.
std::string text_of_model_file(const Options& o) {
  if (!o.model.ends_with(".toml")) return {};
  return text_of_file(o.model, "--model", "give a TOML file of layers");
}

/// Files of one name may differ between hosts.
std::string model_agreement(const Options& o) {
  const std::string text = text_of_model_file(o);
  if (text.empty()) return {};
  return fmt::format("contents of the model file {:016x}\n", std::hash<std::string>()(text));
}

/// What the workers must have in common.
std::string agreement(const Options& o) {
  Options rows = resolved(o);
  rows.data = shown_data(o);
  OptionTable table;
  add_own_rows(table, rows);
  return table.agreement() + model_agreement(o);
}

}  // namespace

data::ImageSize image_size_of_model(const Options& o) {
  const nn::ModelSpec spec = o.model.ends_with(".toml") ? nn::read_model(o.model, {{}, 10})
                                                        : nn::model_by_name(o.model, 10);
  require(
      spec.input.size() == 3, ErrorKind::argument,
      "--resize model: model {} takes samples of shape {}, which are not images; give a size, as "
      "--resize 28x28",
      o.model, nn::describe(spec.input));
  return {spec.input[1], spec.input[2]};
}

/// Images are resized only on request: what a model sees should be what was chosen for it.
nn::ModelSpec model_for(const Options& o, const data::Dataset& data) {
  const Task task = task_of(o, data);
  nn::ModelSpec spec = model_of(o.model, task);
  spec.loss = task.loss;
  spec.loss.smoothing = o.label_smoothing;
  spec.loss.class_weights = class_weights_of(o.class_weights, data);
  nn::require_logits(spec);
  require(nn::takes(spec, data.sample_shape()), ErrorKind::argument,
          "--model {}: it takes samples of shape {}, those of --data {} are {}; choose another "
          "model, or {}",
          o.model, nn::describe(spec.input), shown_data(o), nn::describe(data.sample_shape()),
          data.sample_shape().size() == 3 ? "images of that size (--resize)"
                                          : "change \"input\" in its file");
  const nn::Shape output = nn::shapes(spec).back();
  require(
      spec.loss.kind == nn::Loss::cross_entropy
          ? output == task.output
          : nn::elements_of(output) == nn::elements_of(task.output),
      ErrorKind::argument,
      "--model {}: its outputs are {}, of layer {} ({}), --data {} with --loss {} needs {}; change "
      "this layer, or choose another model{}",
      o.model, nn::describe(output), spec.layers.size(), nn::describe(spec.layers.back()),
      shown_data(o), nn::name(spec.loss.kind), nn::describe(task.output),
      output.size() == 2 && spec.loss.kind != nn::Loss::cross_entropy
          ? "; for a class at each step, take --loss cross_entropy"
          : "");
  return spec;
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

void to_standard_error(LogLevel level, std::string_view text) {
  if (level != LogLevel::debug) fast::say("\n{}\n", printable(text, Newlines::keep));
}

backends::OnDevice backend_of(const Options& o, const nn::ModelSpec& spec, const Group& group) {
  const nn::BackendOptions options{optimizer_of(o), o.clip_norm, o.accumulate, o.threads};
  if (o.device != "cpu") {
    const std::optional<int> gpu = gpu_of(o.device);
    require(o.backend == "nn", ErrorKind::argument,
            "--device {}: only nn's models run there; leave --backend {} out, or take --device cpu",
            o.device, o.backend);
    const std::vector<int> hosts = group.everyone().hosts();  // of spares, too
    return backends::make_cuda(spec, o.trainer.seed, options,
                               {gpu, group.rank(), hosts, o.precision, o.autotune, o.graph,
                                o.deterministic, prefetch_of(o) > 0, to_standard_error});
  }
  return {backends::by_name(o.backend).make(spec, o.trainer.seed, options), ""};
}

train::TrainerOptions trainer_options(const Options& o) {
  train::TrainerOptions trainer = o.trainer;
  trainer.names = {shown_data(o), o.model, optimizer_text(o), text_of_model_file(o), {}};
  trainer.batch_size = o.batch_size * static_cast<std::size_t>(o.accumulate);
  if (o.augment || o.rotate > 0 || o.color_jitter > 0 || o.erase > 0)
    trainer.augmentation = {o.augment ? data::Augmentation().padding : 0, o.augment, o.rotate,
                            o.color_jitter, o.erase};
  trainer.prefetch.ahead = static_cast<std::size_t>(prefetch_of(o));
  trainer.worker.mixing_threads = std::min(o.threads, most_mixing_threads);
  trainer.prefetch.deadline = o.trainer.worker.deadline;
  trainer.learning_rate.base = learning_rate_of(o);
  trainer.all_reduce = is_all_reduce(o);
  trainer.progress = !o.quiet;
  trainer.placement = !o.no_placement;
  trainer.momentum = momentum_of(o);
  trainer.worker.algorithm = o.rule.rule();
  trainer.worker.site = o.site.join();
  trainer.worker.must_agree = agreement(o);
  if (trainer.out) {
    Options shown = o;
    shown.data = shown_data(o);
    trainer.configuration = heading_of_config() + config_of(shown);
  }
  if (o.tensorboard || o.trace || o.metrics_port > 0) {
    trainer.make_observer = [o](int worker, const LogSink& log) {
      return observer_of(o, worker, log);
    };
  }
  trainer.worker.log = to_standard_error;
  return trainer;
}

}  // namespace fast_train
