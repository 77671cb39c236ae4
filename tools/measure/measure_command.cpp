#include "measure/measure_command.hpp"

#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/nn/backend.hpp>

#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "nn/shape.hpp"
#include "topology/hosts.hpp"

namespace tools {

using namespace fast;

namespace {

constexpr Seconds patience{60};
constexpr Seconds step_budget{2};
constexpr int classes = 10;

/// Steps on random samples.
std::function<void()> step_of(const std::string& model, int batch_size) {
  const nn::ModelSpec spec = nn::model_by_name(model, classes);
  const auto count = static_cast<std::size_t>(batch_size);
  std::vector<float> inputs(count * static_cast<std::size_t>(nn::elements_of(spec.input)));
  Rng rng(1);
  for (float& value : inputs) value = static_cast<float>(rng.uniform());
  std::vector<std::int32_t> labels(count);
  for (std::size_t k = 0; k < count; ++k) labels[k] = static_cast<std::int32_t>(k % classes);
  std::shared_ptr<Backend> backend = nn::make_backend<float>(spec, 1);
  return [=, shape = spec.input] { backend->train(Batch{inputs, labels, shape}); };
}

}  // namespace

MeasureCommand::MeasureCommand(Command& command, std::string& cluster) {
  command.begin_group("Cluster", "fast-topology plan --cluster my.toml");
  offer(command.add_option("--cluster", cluster, "a TOML file that describes the cluster"),
        {"<file>"});
  command.begin_group("Measurement",
                      "fastrun -n 8 fast-topology plan --measure --write-cluster my.toml");
  command.add_flag("--measure", asked_,
                   "measure the cluster: start one rank for each worker, under fastrun or mpiexec");
  add_measurement(command);
}

void MeasureCommand::add_measurement(Command& command) {
  of_measurement_ = {
      offer(command.add_option("--write-cluster", write_cluster_,
                               "write what was measured to a file for --cluster"),
            {"<file>"}),
      restrict<double>(command.add_option("--step-ms", step_ms_,
                                          "milliseconds of a step; without it, steps of --model"),
                       {.low = 1e-6, .high = 1e9, .text = "a {}, 1e-6 or more and below 1e9,"}),
      command.add_option("--model", model_, "a model of fast-train by name"),
      restrict<int>(command.add_option("--batch-size", batch_size_, "samples of a measured step"),
                    {.low = 1, .high = 1'000'001, .text = "a {} from 1 to 1000000"}),
      restrict<double>(command.add_option("--parameters", parameters_,
                                          "parameters; without it, those of --model"),
                       {.low = 1, .high = 2.5e13, .text = "a {}, 1 or more and below 2.5e13,"}),
      restrict<double>(command.add_option("--measure-s", budget_s_, "seconds for the links"),
                       {.low = 0.1, .high = 601, .text = "a {}, 0.1 or more and below 601,"})};
}

void MeasureCommand::check_unused() const {
  for (const CLI::Option* option : of_measurement_) {
    require(option->count() == 0, ErrorKind::argument,
            "plan: {} belongs to --measure; add --measure, or leave it out: the file of --cluster "
            "states step_s and payload_bytes",
            option->get_name());
  }
}

void MeasureCommand::check(const fast::Group& group) const {
  const HostSizes sizes(group.hosts());
  require(group.size() > 1, ErrorKind::argument,
          "plan --measure: there is one rank; start one for each worker: fastrun -n 4 "
          "fast-topology plan --measure");
  require(sizes.are_equal(), ErrorKind::argument,
          "plan --measure: the hosts have {} to {} ranks; start as many on each", sizes.least,
          sizes.most);
  require(!model_.ends_with(".toml"), ErrorKind::argument,
          "--model: {} is a file; give a model by name, or --step-ms and --parameters in its place",
          printable(model_));
  if (!write_cluster_.empty() && group.rank() == 0) require_writable(write_cluster_);
}

MeasuredCluster MeasureCommand::measure(const mpi::Communicator& world) const {
  const fast::Group group(world);
  ClusterMeasurement asked;
  agree(group, Deadline(patience), "plan --measure", [&] {
    check(group);
    asked.payload_bytes =
        4 * (parameters_
                 ? *parameters_
                 : static_cast<double>(nn::parameter_count(nn::model_by_name(model_, classes))));
  });
  asked.hosts = group.hosts();
  asked.steps = [&] {
    return step_ms_ ? StepTimes{*step_ms_ / 1e3, 0}
                    : time_steps(step_of(model_, batch_size_), step_budget);
  };
  asked.links.budget = Seconds(budget_s_);
  return measure_cluster(world, group, asked);
}

void MeasureCommand::write(const MeasuredCluster& measured) const {
  if (write_cluster_.empty()) return;
  write_whole(write_cluster_,
              "# Written by fast-topology plan --measure\n" + cluster_text(measured.cluster));
}

}  // namespace tools
