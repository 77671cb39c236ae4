#include "fast_train/rows.hpp"

#include "data/options/rows.hpp"
#include "fast_train/conditions.hpp"

namespace fast_train {

using namespace fast;
using namespace fast::options;

void add_data_rows(OptionTable& table, Options& o) {
  table.group("data");
  table
      .add("data", o.data, text(),
           "fashion-mnist, a file (.csv, .npz, .npy), shards (\"train-*.tar\"), or a directory "
           "with shards, images in folders (train/<class>/*.png or .jpg), the binary files of "
           "CIFAR-10 or CIFAR-100, .npy files or four IDX files (plain or .gz); or a stream of "
           "samples (nats://HOST:PORT/SUBJECT), with --samples for an epoch and --test-data")
      .offer({"fashion-mnist", std::string(files), std::string(directories)})
      .agreed();
  data::add_rows(table, o.load);
  data::add_limit(table, o.load);
  table
      .add("augment", o.augment,
           "train on crops of images padded by 4; every other image is mirrored")
      .agreed();
  table.add("prefetch", o.prefetch, options::optional(number<int>(zero_or_more())),
            "batches that a thread makes ahead of training [2 for GPUs and streams, else 0]");
}

void add_model_rows(OptionTable& table, Options& o) {
  table.group("model");
  table
      .add("model", o.model, text(),
           "lenet (61,706 parameters), mlp (784-256-10), mlp:A-B-... (hidden widths), lstm "
           "(24,458; reads 28x28 images row by row), lstm:HIDDEN, resnet20 (272,474, 32x32 color "
           "images), resnet50 (224x224 color images), or a TOML file of layers (FILE.toml)")
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
  table.add("threads", o.threads, number<int>(one_or_more()), "cores that each worker computes on")
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
           "on GPUs, measure ways to compute each convolution and product, and take the fastest")
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

}  // namespace fast_train
