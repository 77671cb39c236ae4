#include "fast_train/rows.hpp"

#include "fast_train/conditions.hpp"
#include "train/options/rows.hpp"

namespace fast_train {

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

}  // namespace fast_train
