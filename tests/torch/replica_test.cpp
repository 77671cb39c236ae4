#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/torch/backend.hpp>
#include <fast/torch/replica.hpp>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"

using fast::ParameterLayout;
using fast::Role;
using fast::TensorView;
using fast::torch::Replica;
namespace nn = torch::nn;

namespace {

nn::Sequential two_layers() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(2, 3, 3)), nn::BatchNorm2d(3), nn::Flatten(),
                        nn::Linear(3 * 4 * 4, 5));
}

at::Tensor images() { return at::arange(2 * 2 * 6 * 6, at::kFloat).view({2, 2, 6, 6}) / 50; }

std::vector<at::Tensor> values(const nn::Module& module) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : module.parameters()) all.push_back(tensor.detach().clone());
  for (const at::Tensor& tensor : module.buffers()) all.push_back(tensor.detach().clone());
  return all;
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return at::equal(x, y); });
}

struct Tied : nn::Module {
  Tied() : first(register_module("first", nn::Linear(4, 4))) {
    second = register_module("second", nn::Linear(4, 4));
    second->weight.set_data(first->weight.data());
    third = register_module("third", nn::Linear(nn::LinearOptions(4, 4).bias(false)));
    third->weight.set_data(first->weight.data().t());
  }
  nn::Linear first, second{nullptr}, third{nullptr};
};

}  // namespace

TEST_CASE("a module's tensors lie in one block of each kind, with the values they had") {
  auto net = two_layers();
  const auto before = values(*net);
  const Replica replica(*net);
  CHECK(replica.is_flat());
  CHECK_FALSE(replica.is_mirrored());
  const ParameterLayout layout(replica.parameters());
  REQUIRE(layout.segments().size() == 2);
  CHECK(layout.segments()[0].element_count == 2 * 3 * 9 + 3 + 3 + 3 + 48 * 5 + 5);
  CHECK(layout.segments()[1].role == Role::buffer);
  CHECK(layout.segments()[1].element_count == 6);  // the count of batches is an integer
  CHECK(layout.views()[0].name == "0.weight");
  CHECK(equal(values(*net), before));
}

TEST_CASE("an optimizer made before goes on with the tensors, momentum and all") {
  const auto run = [](int flatten_at) {
    torch::manual_seed(3);
    auto net = two_layers();
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    std::vector<Replica> replicas;
    for (int step = 0; step < 6; ++step) {
      if (step == flatten_at) replicas.emplace_back(*net);
      optimizer.zero_grad();
      net->forward(images()).square().mean().backward();
      optimizer.step();
    }
    for (const Replica& replica : replicas) replica.require_in_place();
    return values(*net);
  };
  const auto plain = run(-1);
  CHECK(equal(run(0), plain));
  CHECK(equal(run(3), plain));
}

TEST_CASE("what is written to the views is what the module computes with") {
  auto net = two_layers();
  net->eval();
  const Replica replica(*net);
  for (const TensorView& view : replica.parameters())
    if (view.role == Role::parameter)
      std::fill_n(static_cast<float*>(view.data), view.element_count(), 0.0F);
  auto* bias = static_cast<float*>(replica.parameters()[5].data);
  REQUIRE(replica.parameters()[5].name == "3.bias");
  bias[4] = 2.5F;
  const at::Tensor output = net->forward(images());
  CHECK(output.sum().item<float>() == 5.0F);
  CHECK(output[1][4].item<float>() == 2.5F);
}

TEST_CASE("tied weights count once and stay tied") {
  Tied net;
  const Replica replica(net);
  CHECK(replica.is_flat());
  CHECK(ParameterLayout(replica.parameters()).parameter_count() == 16 + 4 + 4);
  static_cast<float*>(replica.parameters()[0].data)[1] = 42;
  CHECK(net.first->weight[0][1].item<float>() == 42);
  CHECK(net.second->weight[0][1].item<float>() == 42);
  CHECK(net.third->weight[1][0].item<float>() == 42);
}

TEST_CASE("a tensor in another memory format keeps it") {
  auto conv = nn::Conv2d(nn::Conv2dOptions(2, 3, 3));
  conv->weight.set_data(conv->weight.data().contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor before = conv->weight.detach().clone();
  const Replica replica(*conv);
  CHECK(replica.is_flat());
  CHECK(replica.parameters()[0].shape == std::vector<std::int64_t>{3, 3, 3, 2});
  CHECK(conv->weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(at::equal(conv->weight, before));
}

TEST_CASE("sides of 1 do not hide the order of the others in memory") {
  auto conv = nn::Conv2d(nn::Conv2dOptions(8, 16, {1, 3}));
  // What PyTorch makes of such a kernel in channels_last.
  conv->weight.set_data(at::empty_strided({16, 8, 1, 3}, {24, 1, 24, 8}).uniform_());
  const at::Tensor before = conv->weight.detach().clone();
  const Replica replica(*conv);
  const TensorView& view = replica.parameters()[0];
  CHECK(view.strides.empty());
  std::vector<std::int64_t> above_1 = view.shape;
  std::erase(above_1, 1);
  CHECK(above_1 == std::vector<std::int64_t>{16, 3, 8});
  const auto* values = static_cast<const float*>(view.data);
  CHECK(values[(2 * 3 + 1) * 8 + 5] == before[2][5][0][1].item<float>());
  CHECK(at::equal(conv->weight, before));
}

TEST_CASE("a row-major tensor with sides of 1 keeps its shape") {
  auto conv = nn::Conv2d(nn::Conv2dOptions(1, 4, {1, 3}));
  const Replica replica(*conv);
  CHECK(replica.parameters()[0].shape == std::vector<std::int64_t>{4, 1, 1, 3});
}

TEST_CASE("memory that something else shares is left where it is") {
  auto net = two_layers();
  const at::Tensor alias = net->parameters()[4].detach();
  const Replica replica(*net);
  CHECK_FALSE(replica.is_flat());
  CHECK(ParameterLayout(replica.parameters()).segments().size() == 7);
  static_cast<float*>(replica.parameters()[4].data)[0] = 7;
  CHECK(alias[0][0].item<float>() == 7);
  CHECK_FALSE(Replica(*two_layers(), {.flat = false}).is_flat());
}

TEST_CASE("a mirror brings values to the views and back") {
  for (const bool flat : {true, false}) {
    auto net = two_layers();
    const Replica replica(*net, {.flat = flat, .mirror = true});
    CHECK(replica.is_mirrored());
    auto* view = static_cast<float*>(replica.parameters()[0].data);
    const float before = view[5];
    view[5] = 3;
    CHECK(net->parameters()[0].flatten()[5].item<float>() == before);
    replica.to_module();
    CHECK(net->parameters()[0].flatten()[5].item<float>() == 3);
    {
      const torch::NoGradGuard no_gradients;
      net->parameters()[0].mul_(2);
    }
    replica.to_host();
    CHECK(view[5] == 6);
  }
}

TEST_CASE("memory that moved, and modules that do not fit, are refused by name") {
  auto net = two_layers();
  const Replica replica(*net);
  replica.require_in_place();
  net->to(at::kDouble);
  CHECK_THROWS_WITH(replica.require_in_place(), ContainsSubstring("\"0.weight\" has moved"));

  nn::Sequential empty{nn::Flatten()};
  CHECK_THROWS_WITH(Replica(*empty),
                    ContainsSubstring("the module has 0 parameters, and none that trains"));

  nn::Module sliced;
  const at::Tensor whole = at::zeros({4, 4});
  sliced.register_parameter("w", whole.narrow(1, 0, 2));
  CHECK_THROWS_WITH(Replica(sliced), ContainsSubstring("\"w\" [4x2] f32 has strides [4, 1]"));

  nn::Module overlapping;
  overlapping.register_parameter("a", whole.narrow(0, 0, 2));
  overlapping.register_parameter("b", whole.narrow(0, 1, 2));
  CHECK_THROWS_WITH(Replica(overlapping), ContainsSubstring("overlap in memory"));

  nn::Module complex;
  complex.register_parameter("z", at::zeros({2}, at::kComplexFloat));
  CHECK_THROWS_WITH(Replica(complex), ContainsSubstring("\"z\" is of type ComplexFloat"));

  nn::Module sparse;
  sparse.register_parameter("s", at::eye(3).to_sparse());
  CHECK_THROWS_WITH(Replica(sparse), ContainsSubstring("\"s\" is sparse"));

  nn::Module none;
  none.register_parameter("w", at::zeros({0, 3}));
  CHECK_THROWS_WITH(Replica(none), ContainsSubstring("has no elements"));
}

TEST_CASE("two lines make a loop decentralized: every worker ends near the mean optimum") {
  for (const bool mirror : {false, true}) {
    std::vector<float> found(4);
    fast::local::run(4, [&](const fast::Group& group) {
      nn::Linear line(1, 1);
      torch::optim::SGD optimizer(line->parameters(), torch::optim::SGDOptions(0.1));
      fast::WorkerOptions options;
      options.deadline = fast::Seconds(60);
      fast::torch::Worker worker(group, fast::stencil::ring(), *line, options, {.mirror = mirror});
      const at::Tensor x = at::linspace(-1, 1, 16).view({16, 1});
      const at::Tensor y = 3 * x + static_cast<float>(group.rank());  // intercepts 0..3
      for (int step = 0; step < 200; ++step)
        worker.step([&] {
          for (auto& g : optimizer.param_groups())
            static_cast<torch::optim::SGDOptions&>(g.options()).lr(step < 150 ? 0.1 : 0.001);
          optimizer.zero_grad();
          const at::Tensor loss = (line->forward(x) - y).square().mean();
          loss.backward();
          optimizer.step();
          return loss.item<double>();
        });
      found[static_cast<std::size_t>(group.rank())] = line->bias.item<float>();
      worker->await_finish();
    });
    for (const float bias : found) CHECK(bias == Approx(1.5).margin(0.05));
  }
}

// Each pull is less than half a unit in the last place.
TEST_CASE("small pulls on a module's 16-bit weights add up") {
  const bool mirror = GENERATE(false, true);
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const double unit = type == at::kBFloat16 ? 0x1p-7 : 0x1p-10;
    std::vector<double> found(2);
    fast::local::run(2, [&](const fast::Group& group) {
      nn::Linear line(3, 1);
      line->to(type);
      for (at::Tensor& each : line->parameters()) each.data().fill_(1 + 10 * unit * group.rank());
      fast::WorkerOptions options;
      options.deadline = fast::Seconds(60);
      options.algorithm = fast::algorithm::awc({.consensus = 0.02});
      options.initial = fast::Initial::as_is;
      fast::torch::Worker worker(group, fast::stencil::complete(), *line, options,
                                 {.mirror = mirror});
      for (int round = 0; round < 200; ++round) worker.step([] {});
      worker->await_finish();
      found[static_cast<std::size_t>(group.rank())] = line->bias.to(at::kFloat).item<float>();
    });
    for (const double bias : found) CHECK(bias == Approx(1 + 5 * unit).epsilon(0).margin(unit));
  }
}

TEST_CASE("a module whose memory moves in training is refused, and nobody hangs") {
  CHECK_THROWS_WITH(fast::local::run(2,
                                     [&](const fast::Group& group) {
                                       nn::Linear line(1, 1);
                                       fast::WorkerOptions options;
                                       options.deadline = fast::Seconds(30);
                                       fast::torch::Worker worker(group, fast::stencil::ring(),
                                                                  *line, options);
                                       for (int step = 0; step < 3; ++step)
                                         worker.step([&] {
                                           if (step == 1 && group.rank() == 1)
                                             line->to(at::kDouble);
                                         });
                                     }),
                    ContainsSubstring("\"weight\" has moved"));
}

namespace {

/// A convolution that does not train, a normalization that does not, and a layer that does.
nn::Sequential adapted() {
  auto net = two_layers();
  for (const std::size_t i : {0UL, 1UL})
    for (const at::Tensor& one : net[i]->parameters()) one.set_requires_grad(false);
  return net;
}

std::vector<std::string> names(const std::vector<TensorView>& views) {
  std::vector<std::string> names;
  for (const TensorView& view : views) names.push_back(view.name);
  return names;
}

fast::WorkerOptions patient() {
  fast::WorkerOptions options;
  options.deadline = fast::Seconds(60);
  return options;
}

}  // namespace

TEST_CASE("what trains and buffers are the replica, what does not train is frozen") {
  auto net = adapted();
  const void* place = net->parameters()[0].data_ptr();
  const Replica replica(*net);
  CHECK(names(replica.parameters()) == std::vector<std::string>{"3.weight", "3.bias",
                                                                "1.running_mean", "1.running_var",
                                                                "1.num_batches_tracked"});
  CHECK(names(replica.frozen()) ==
        std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias"});
  CHECK(replica.is_flat());
  CHECK(net->parameters()[0].data_ptr() == place);
  replica.require_in_place();
  net->parameters()[1].set_requires_grad(true);
  CHECK_THROWS_WITH(replica.require_in_place(), ContainsSubstring("\"0.bias\" trains now"));

  for (const at::Tensor& one : net->parameters()) one.set_requires_grad(false);
  CHECK_THROWS_WITH(Replica(*net), ContainsSubstring("has 6 parameters, and none that trains"));
}

TEST_CASE("parameters that are frozen in turn stay in the replica") {
  auto net = two_layers();
  const Replica replica(*net);
  CHECK(replica.frozen().empty());
  net->parameters()[0].set_requires_grad(false);
  replica.require_in_place();
}

TEST_CASE("frozen weights that are tied to trained ones stay tied, and are not compared") {
  Tied net;
  net.second->weight.set_requires_grad(false);
  net.second->bias.set_requires_grad(false);
  const Replica replica(net);
  CHECK(names(replica.frozen()) == std::vector<std::string>{"second.bias"});
  static_cast<float*>(replica.parameters()[0].data)[1] = 42;
  CHECK(net.first->weight[0][1].item<float>() == 42);
  CHECK(net.second->weight[0][1].item<float>() == 42);
}

TEST_CASE("workers send what trains, and have worker 0's frozen parameters bit for bit") {
  for (const int workers : {2, 3}) {
    struct Found {
      std::vector<at::Tensor> before, after;
      std::int64_t messages;
      double bytes;
    };
    std::vector<Found> found(static_cast<std::size_t>(workers));
    torch::manual_seed(5);
    std::vector<nn::Sequential> nets;
    for (int i = 0; i < workers; ++i) nets.push_back(adapted());
    fast::local::run(workers, [&](const fast::Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      nn::Sequential& net = nets[rank];
      found[rank].before = values(*net);
      fast::torch::Worker worker(group, fast::stencil::complete(), *net, patient());
      torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1));
      const fast::WorkerStats before = worker->stats();
      for (int step = 0; step < 4; ++step)
        worker.step([&] {
          optimizer.zero_grad();
          net->forward(images() + group.rank()).square().mean().backward();
          optimizer.step();
        });
      const fast::WorkerStats after = worker->stats();
      found[rank].messages = after.messages_sent - before.messages_sent;
      found[rank].bytes = after.bytes_sent - before.bytes_sent;
      found[rank].after = values(*net);
      worker->await_finish();
    });
    for (const Found& one : found) {
      CHECK(one.messages >= 4 * (workers - 1));
      // 245 parameters are 980 bytes; the 6 statistics begin at the next multiple of 64.
      CHECK(one.bytes == one.messages * (1024 + 4 * 6));
      for (std::size_t i = 0; i < 4; ++i) CHECK(at::equal(one.after[i], found[0].before[i]));
      CHECK_FALSE(at::equal(one.after[4], found[0].before[4]));
    }
    CHECK_FALSE(at::equal(found[1].before[0], found[0].before[0]));
  }
}

TEST_CASE("frozen parameters that differ are an error where weights stay as they are") {
  std::vector<nn::Sequential> nets{adapted(), adapted()};
  CHECK_THROWS_WITH(fast::local::run(2,
                                     [&](const fast::Group& group) {
                                       fast::WorkerOptions options = patient();
                                       options.initial = fast::Initial::as_is;
                                       const fast::torch::Worker worker(
                                           group, fast::stencil::complete(),
                                           *nets[static_cast<std::size_t>(group.rank())], options);
                                     }),
                    ContainsSubstring("frozen tensors differ from worker 0's: \"0.weight\""));
}

TEST_CASE("the backend trains what trains: gradients, clipping and the optimizer's state") {
  auto net = adapted();
  auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(),
                                                       torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto before = values(*net);
  fast::torch::ModuleOptions clipped;
  clipped.clip_norm = 1;
  const auto backend = fast::torch::make_backend(net, optimizer, clipped);
  fast::Batch batch;
  std::vector<float> inputs(2 * 72, 0.5F);
  inputs[3] = -1;
  std::vector<std::int32_t> labels{1, 3};
  batch.inputs = inputs;
  batch.labels = labels;
  batch.sample_shape = {2, 6, 6};
  std::size_t gradients = 0;
  backend->train(batch, [&](const auto& views) { gradients = views.size(); });
  CHECK(gradients == 2);
  CHECK(backend->frozen().size() == 4);
  CHECK(names(backend->optimizer_state()) ==
        std::vector<std::string>{"momentum.3.weight", "momentum.3.bias"});
  const auto after = values(*net);
  for (std::size_t i = 0; i < 6; ++i) CHECK(at::equal(after[i], before[i]) == (i < 4));
}
