#include "fast_train/options.hpp"

#include "fast_train/rows.hpp"
#include "stream/broker.hpp"
#include "train/options/rows.hpp"

namespace fast_train {

using namespace fast;
using namespace fast::options;

namespace {

void add_needs_of_neighbors(OptionTable& table, const Options& o) {
  const Conditions only(o);
  for (const char* name :
       {"staleness", "rejoin_after", "mix_every", "mix_times", "weights", "lazy_weights"}) {
    table.at(name).only_if(only.neighbors(), no_neighbors);
  }
  for (const char* name : {"remote_path", "remote_rate"}) {
    table.at(name).only_if(only.other_hosts(), one_host);
  }
  table.at("closing_rounds")
      .only_if([&o] { return Conditions::has_neighbors(o) || o.trainer.closing_rounds == 0; },
               no_neighbors);
}

void add_needs_of_codecs(OptionTable& table, const Options& o) {
  table.at("codec").only_if(
      [&o] {
        return Conditions::has_neighbors(o) || o.trainer.worker.codec.kind == codec::Kind::identity;
      },
      "an all-reduce averages exactly, and --algorithm none sends no messages; leave the codec out "
      "or take a rule that averages with neighbors (--algorithm awc)");
  table.at("codec_seed")
      .only_if([&o] { return o.trainer.worker.codec.stochastic || o.rule.name == "choco"; },
               "this codec does not round at random; leave it out or take --codec bf16_stochastic");
}

void add_needs_of_rules(OptionTable& table, const Options& o) {
  const Conditions only(o);
  table.at("algorithm")
      .only_if([&o] { return o.exchange != "allreduce" || o.rule.name == "allreduce"; },
               "--exchange allreduce averages gradients over all workers and has no rule for "
               "weights; leave one of the two out");
  table.at("algorithm_option")
      .only_if(only.no_all_reduce(),
               "an all-reduce of gradients has no options; leave it out or take a rule that has "
               "some");
}

void add_needs_of_samples(OptionTable& table, const Options& o) {
  const Conditions only(o);
  table.at("adopt_lost_shards")
      .only_if([&o] { return o.trainer.shards.dirichlet_alpha.has_value(); },
               "with even shards all samples are dealt again every epoch, so that nothing is to be "
               "taken over; leave it out or take --shards dirichlet:ALPHA")
      .only_if(only.no_all_reduce(),
               "an all-reduce cannot go on without a worker, so that nobody's samples are left; "
               "leave it out or take another rule");
}

void add_needs_of_files(OptionTable& table, const Options& o) {
  table.at("evaluate_every")
      .only_if([&o] { return o.trainer.out.has_value(); },
               "its lines of metrics need a directory; add --out DIRECTORY");
  const train::CheckpointOptions& checkpoints = o.trainer.checkpoints;
  table.at("keep").only_if(
      [&checkpoints] {
        return checkpoints.every_rounds > 0 || checkpoints.every_s > 0 || checkpoints.directory;
      },
      "this run writes no checkpoints; add --checkpoint-every or --checkpoints, or leave it out");
  table.at("overwrite")
      .only_if([&o] { return o.trainer.out || o.trainer.checkpoints.directory; },
               "this run writes no files; add --out DIRECTORY, or leave it out");
  table.at("strict").only_if(
      [&checkpoints] { return checkpoints.resume.has_value(); },
      "it is about the checkpoint that a run resumes from; add --resume or leave it out");
}

}  // namespace

void add_needs(OptionTable& table, const Options& o) {
  add_needs_of_neighbors(table, o);
  add_needs_of_codecs(table, o);
  add_needs_of_rules(table, o);
  add_needs_of_samples(table, o);
  add_needs_of_files(table, o);
}

using namespace fast;
using namespace fast::options;

Options::Options() { trainer.learning_rate = train::usual_learning_rate(); }

void add_own_rows(OptionTable& table, Options& o) {
  add_data_rows(table, o);
  add_model_rows(table, o);
  add_device_rows(table, o);
  add_exchange_rows(table, o);
  add_topology_rows(table, o);
  sites::add_rows(table, o.site);
  add_optimizer_rows(table, o);
  add_output_rows(table, o);
  add_program_rows(table, o.requests);
}

void add_rows(OptionTable& table, Options& o) {
  add_own_rows(table, o);
  add_rows(table, o.rule);
  add_rows(table, o.trainer.worker);
  train::add_rows(table, o.trainer);
  add_needs(table, o);
}

std::vector<tools::Group> groups() {
  return {
      {"data", "Data", "fast-train --data cifar-10-batches-bin --model resnet20 --augment"},
      {"model", "Model", "fast-train --model mlp:512-256"},
      {"optimizer", "Optimizer", "fast-train --optimizer adamw --lr 0.002 --epochs 10"},
      {"exchange", "Exchange", "fast-train --algorithm gossip_pga --algorithm-option period=8"},
      {"topology", "Topology", "fast-train --topology ring --lazy-weights"},
      {"sites", "Sites", "fast-train --site heidelberg --site-url tls://nats.example.org/run7"},
      {"device", "Device", "fast-train --device cuda --precision bf16"},
      {"output", "Output", "fast-train --out run --evaluate-every 100"},
      {"checkpoints", "Checkpoints",
       "fast-train --out run --checkpoint-every 10min --resume run/checkpoints"},
      {"faults", "Faults", "fast-train --failure-timeout 2 --on-nonfinite heal"},
      {"program", "Program", "fast-train --topology ring --write-config run.toml"},
  };
}

bool is_all_reduce(const Options& o) {
  return o.exchange == "allreduce" || o.rule.name == "allreduce";
}

bool is_stream(const Options& o) { return stream::is_address(o.data); }

bool brings_momentum(const Options& o) {
  return !is_all_reduce(o) && o.rule.rule().traits().step.own_momentum;
}

}  // namespace fast_train
