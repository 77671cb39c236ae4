#include "fast_train/options.hpp"

#include "fast_train/rows.hpp"
#include "train/options/rows.hpp"

namespace fast_train {

using namespace fast;
using namespace fast::options;

Options::Options() { trainer.learning_rate = train::usual_learning_rate(); }

void add_own_rows(OptionTable& table, Options& o) {
  add_data_rows(table, o);
  add_model_rows(table, o);
  add_device_rows(table, o);
  add_exchange_rows(table, o);
  add_topology_rows(table, o);
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

bool is_stream(const Options& o) { return o.data.starts_with("nats://"); }

bool brings_momentum(const Options& o) {
  return !is_all_reduce(o) && o.rule.rule().traits().step.own_momentum;
}

}  // namespace fast_train
