#include "fast_train/capacity.hpp"

#include <algorithm>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>

#include "combine/host_mixer.hpp"
#include "core/host.hpp"
#include "data/files/split.hpp"
#include "fast_train/read_options.hpp"
#include "worker/start/startup.hpp"

namespace fast_train {

using namespace fast;

namespace {

constexpr double float_bytes = 4, slots = 3;
/// Of a worker as a thread: itself, its heartbeat, and its prefetcher or writer of checkpoints.
constexpr int threads_of_worker = 2;

double elements(const nn::Shape& shape) {
  double product = 1;
  for (const std::int64_t side : shape) product *= static_cast<double>(side);
  return product;
}

/// As a floating-point number: widths on the command line may be of any size.
double parameters_of(const nn::ModelSpec& spec) {
  double sum = 0;
  for (const nn::ParameterSpec& parameter : nn::parameters(spec)) sum += elements(parameter.shape);
  return sum;
}

double outputs_of_sample(const nn::ModelSpec& spec) {
  double sum = 0;
  for (const nn::Shape& shape : nn::shapes(spec)) sum += elements(shape);
  return sum;
}

/// Copies of the parameters: those trained, the optimizer's, each thread's gradients.
double copies_in_model(const Options& o) {
  const double state = o.optimizer == "sgd" ? (*momentum_of(o) > 0 ? 1 : 0) : 2;
  return 1 + state + o.threads;
}

int threads_of(const Options& o, const nn::ModelSpec& spec) {
  const int mixing = std::min(o.threads, most_mixing_threads);
  const auto parameters = static_cast<std::size_t>(std::min(parameters_of(spec), 1e18));
  const algorithm::Rule rule = o.rule.rule();
  const bool shares = !worker::sends_sums(rule.traits(), o.trainer.worker) && !is_all_reduce(o) &&
                      combine::HostMixer::shares_sweeps(*rule.make(), parameters, mixing);
  return threads_of_worker + (shares ? mixing - 1 : 0);
}

}  // namespace

double least_bytes_of_worker(const Options& o, const nn::ModelSpec& spec) {
  const double parameters = parameters_of(spec);
  const auto batch = static_cast<double>(o.batch_size);
  const double batches =
      batch * o.accumulate * (1 + static_cast<double>(prefetch_of(o))) * elements(spec.input);
  const double published =
      o.trainer.worker.codec.kind == codec::Kind::identity ? slots * parameters : 0;
  const bool on_cpu = o.device == "cpu";
  const double model =
      on_cpu ? copies_in_model(o) * parameters + batch * outputs_of_sample(spec) : parameters;
  return float_bytes * (batches + published + model);
}

void check_capacity(const Options& o, const nn::ModelSpec& spec, int workers) {
  const double each = least_bytes_of_worker(o, spec), all = each * workers;
  const bool one_process = o.exchange == "local";
  // A limit of this process or its control group need not be one of the host's other ranks.
  const auto host = static_cast<double>(available_host_memory_bytes()),
             own = static_cast<double>(available_memory_bytes());
  const bool fits = all <= host && (one_process ? all : each) <= own;
  require(
      fits, ErrorKind::resource,
      "fast-train: {} worker{} on this host, each with model {} of {:.0f} parameters, --batch-size "
      "{}, --prefetch {} and --threads {}: at least {} each, {} in all; {} of memory are available "
      "here, {} to this process; take fewer workers or smaller numbers",
      workers, workers == 1 ? "" : "s", o.model, parameters_of(spec), o.batch_size, prefetch_of(o),
      o.threads, size_text(each), size_text(all), size_text(host), size_text(own));
  const double threads = static_cast<double>(workers) * threads_of(o, spec);
  require(!one_process || threads <= static_cast<double>(most_threads()), ErrorKind::resource,
          "--workers {}: they need at least {:.0f} threads, this process can start {}; take fewer "
          "workers, or ranks (mpiexec -n)",
          workers, threads, most_threads());
}

std::size_t largest_batch(const Options& o, std::size_t samples, int workers) {
  // Spares may join, and then take samples, too.
  return samples /
         (static_cast<std::size_t>(workers + o.spares) * static_cast<std::size_t>(o.accumulate));
}

std::string fit_batch(Options& o, const data::Dataset& train, int workers) {
  const double share = is_stream(o) ? 0 : o.trainer.validation;
  const auto about = static_cast<std::size_t>(static_cast<double>(train.size()) * (1 - share));
  if (!o.batch_fits || largest_batch(o, about, workers) > 2 * o.batch_size) return {};
  const std::size_t samples =
      share > 0 ? data::hold_out(train, share, o.trainer.seed).rest.size() : train.size();
  const std::size_t most = largest_batch(o, samples, workers);
  if (most >= o.batch_size) return {};
  o.batch_size = std::max<std::size_t>(most, 1);
  if (most == 0) return {};  // the Trainer says what is missing
  return fmt::format("--batch-size {}: {} training samples for {} worker{}{} allow no larger one",
                     most, samples, workers, workers == 1 ? "" : "s",
                     o.accumulate > 1 ? fmt::format(" with --accumulate {}", o.accumulate) : "");
}

void check_counts(const Options& o, std::size_t samples) {
  require(o.load.limit <= samples, ErrorKind::argument,
          "--samples {}: the training part of --data {} has {}; take at most that many, or leave "
          "--samples out for all",
          o.load.limit, o.data, samples);
  const auto of_step = static_cast<double>(o.batch_size) * o.accumulate;
  require(of_step <= static_cast<double>(samples), ErrorKind::argument,
          "--batch-size {} with --accumulate {}: {:.0f} samples a step, the training part has {}; "
          "take smaller numbers",
          o.batch_size, o.accumulate, of_step, samples);
  require(static_cast<std::size_t>(o.threads) <= o.batch_size, ErrorKind::argument,
          "--threads {}: each takes samples of a batch, and --batch-size is {}; take at most as "
          "many threads",
          o.threads, o.batch_size);
  require(o.trainer.loader_threads <= of_step, ErrorKind::argument,
          "--loader-threads {}: each makes samples of a batch of {:.0f}; take at most as many",
          o.trainer.loader_threads, of_step);
}

}  // namespace fast_train
