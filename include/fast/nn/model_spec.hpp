// The description of a model: the shape of its input and a list of layers. It does not depend on
// the device or on the type of numbers.
#pragma once

#include <fast/nn/loss.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fast::nn {

/// The shape of one sample: {features} for a vector, {steps, features} for a sequence, {channels,
/// height, width} for an image.
using Shape = std::vector<std::int64_t>;

/// y = W x + b, with W [units x inputs]. The input is a vector, or a sequence, of which each step
/// is mapped by itself.
struct Dense {
  std::int64_t units;
};

/// Cross-correlation of an image with square kernels W [channels x input channels x kernel x
/// kernel]. `padding` zeros surround the image. With `bias`, each output channel has a bias.
struct Conv2d {
  std::int64_t channels;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = true;
};

/// Batch normalization (Ioffe & Szegedy 2015, arXiv 1502.03167), as in PyTorch's BatchNorm2d. Each
/// channel of an image is shifted and scaled to mean 0 and variance 1 over the batch. It is then
/// multiplied by a weight, and a bias is added. Evaluation uses running statistics, the buffers of
/// the layer: running = (1 - momentum)·running + momentum·batch, with the unbiased variance of the
/// batch.
struct BatchNorm {
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// Group normalization (Wu & He 2018, arXiv 1803.08494). Each group of channels of a sample is
/// shifted and scaled to mean 0 and variance 1. Then each channel is multiplied by a weight and
/// added to a bias. The layer has no buffers and is the same in evaluation.
struct GroupNorm {
  std::int64_t groups;
  double epsilon = 1e-5;
};

/// Layer normalization (Ba et al. 2016, arXiv 1607.06450) of a vector, or of each step of a
/// sequence. Its features are shifted and scaled to mean 0 and variance 1. Then each feature is
/// multiplied by a weight and added to a bias.
struct LayerNorm {
  double epsilon = 1e-5;
};

/// A vector of tokens becomes a sequence of their rows of W [tokens x width]. Tokens are whole
/// numbers from 0 to tokens - 1, given as floats. Others throw Error(argument).
struct Embedding {
  std::int64_t tokens;
  std::int64_t width;
};

/// Adds a trained value to each feature of each step of a sequence, W [steps x features]. Attention
/// and dense layers do not see the order of steps otherwise.
struct Position {};

/// Multi-head attention of a sequence to itself (Vaswani et al. 2017, arXiv 1706.03762), as in
/// PyTorch's MultiheadAttention. Queries, keys and values are dense layers of each step. Each head
/// takes an equal part of their features, of width d. The output of a step is a sum of the values
/// of all steps, weighted by softmax(q·k / √d), and goes through another dense layer. With
/// `causal`, a step takes the steps up to itself only. Training keeps heads·steps² weights a
/// sample.
struct Attention {
  std::int64_t heads;
  bool causal = false;
};

/// In training each value is set to 0 with probability `rate`, and otherwise divided by 1 - rate
/// (Srivastava et al. 2014). Evaluation changes nothing. The choice is a function of the model's
/// parameters and of the sample. The same seed therefore gives the same run, also after a restart.
/// Every worker and every step has another choice.
struct Dropout {
  double rate = 0.5;
};

/// max(x, 0). The derivative at 0 is 0.
struct Relu {};

/// x·σ(x) with σ(x) = 1 / (1 + exp(-x)), also called Swish (Elfwing et al. 2018, arXiv 1702.03118).
struct Silu {};

/// x·Φ(x) with the normal distribution Φ (Hendrycks & Gimpel 2016, arXiv 1606.08415), exact, not
/// its approximation by tanh.
struct Gelu {};

/// The hyperbolic tangent.
struct Tanh {};

/// σ(x) = 1 / (1 + exp(-x)).
struct Sigmoid {};

/// x if it is positive, else slope·x. The derivative at 0 is the slope, a number from 0 to 1.
struct LeakyRelu {
  double slope = 0.01;
};

/// exp(x) of each feature, divided by the sum over the features of the vector, or of the step of a
/// sequence. Cross-entropy applies it itself: its model ends without this layer.
struct Softmax {};

/// The mean of each size x size window, in which padding counts as zeros, as in PyTorch. Rows and
/// columns that fill no window are ignored. Padding is at most half a window.
struct AveragePool {
  std::int64_t size = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

/// Cross-correlation along the steps of a sequence, with kernels W [channels x features x kernel].
/// `padding` steps of zeros come before and after. The output is a sequence of `channels` features.
struct Conv1d {
  std::int64_t channels;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = true;
};

/// The largest value of each size x size window. Rows and columns that fill no window are ignored.
/// The gradient goes to the first of equal values. Padding is at most half a window and counts as
/// less than any value.
struct MaxPool {
  std::int64_t size = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

/// An image becomes a vector, channel after channel. A sequence becomes a vector, step after step.
struct Flatten {};

/// The mean of each channel: an image becomes a vector.
struct GlobalAveragePool {};

/// Long short-term memory over a sequence of vectors x (Hochreiter & Schmidhuber 1997, with the
/// forget gate of Gers et al. 2000).
///
/// Each of the gates i, f, g, o has `hidden` units. i = σ(W_i x + U_i h + b_i); f and o have the
/// same form. g = tanh(W_g x + U_g h + b_g). Then c = f·c + i·g and h = o·tanh(c). c and h start at
/// 0. W is [4 hidden x inputs] and U [4 hidden x hidden], with the gates in that order, as in
/// PyTorch. There is one bias. The output is the last h, a vector. With `every_step` it is the
/// sequence of all h.
struct Lstm {
  std::int64_t hidden;
  bool every_step = false;
};

/// Gated recurrent unit over a sequence of vectors x (Cho et al. 2014, arXiv 1406.1078), as in
/// PyTorch. r = σ(W_r x + a_r + U_r h + b_r); the gate z has the same form. n = tanh(W_n x + a_n +
/// r·(U_n h + b_n)). h = (1 - z)·n + z·h, and h starts at 0. W is [3 hidden x inputs] and U [3
/// hidden x hidden], with r, z, n in that order. The output is that of Lstm.
struct Gru {
  std::int64_t hidden;
  bool every_step = false;
};

struct LayerSpec;

/// body(x) + shortcut(x) (He et al. 2016, arXiv 1512.03385). An empty shortcut is x itself. Body
/// and shortcut give outputs of the same shape.
struct Residual {
  std::vector<LayerSpec> body;
  std::vector<LayerSpec> shortcut;
};

struct LayerSpec
    : std::variant<Dense, Conv2d, Relu, MaxPool, Flatten, BatchNorm, GroupNorm, GlobalAveragePool,
                   Lstm, Residual, Silu, LayerNorm, Embedding, Dropout, Gelu, AveragePool, Gru,
                   Conv1d, Tanh, Sigmoid, LeakyRelu, Softmax, Position, Attention> {
  using variant::variant;
};

/// A model and its loss. The output of the last layer is a vector {outputs}, or a sequence {steps,
/// outputs}. Cross-entropy takes outputs as logits of the classes: a vector for one label a sample,
/// a sequence for a label a step. The other losses compare each output with a target.
struct ModelSpec {
  std::string name;
  Shape input;
  std::vector<LayerSpec> layers;
  LossSpec loss = {};
};

/// A parameter tensor and its place in the flat vector of all parameters, or a buffer and its place
/// in the flat vector of all buffers.
struct ParameterSpec {
  std::string name;  ///< "conv1.weight", "fc2.bias", "bn1.running_mean": each kind counted from 1
  Shape shape;
  std::size_t offset;   ///< in elements
  std::size_t count;    ///< of elements
  std::int64_t fan_in;  ///< inputs of a sum; 0 for other parameters
  double initial;       ///< value if fan_in is 0: 1 for scales and variances, else 0
  std::size_t layer;    ///< index into ModelSpec::layers
};

/// Returns the shapes of the input and of the output of each layer: layers.size() + 1 shapes.
/// Throws Error(argument) with the names of model and layer if a layer does not fit its input or if
/// a size is not positive. Throws it too if the last output is neither a vector nor a sequence.
std::vector<Shape> shapes(const ModelSpec& spec);

/// The same for a list of layers that is part of a model.
std::vector<Shape> shapes_through(const std::vector<LayerSpec>& layers, const Shape& input);

/// Whether a model takes samples of this shape. A model for vectors or sequences takes any shape
/// with the same number of values. A model for images takes its own shape; [28x28] is an image of
/// one channel.
bool takes(const ModelSpec& spec, const Shape& sample);

/// Whether the model learns one class label a sample, by cross-entropy.
bool classifies(const ModelSpec& spec);

/// Whether measures_of() gives measures of the model's outputs.
bool has_measures(const ModelSpec& spec);

/// All parameters in order, without gaps. Throws as shapes() does.
std::vector<ParameterSpec> parameters(const ModelSpec& spec);
std::size_t parameter_count(const ModelSpec& spec);

/// All buffers (running statistics) likewise.
std::vector<ParameterSpec> buffers(const ModelSpec& spec);

/// A text for messages: "conv2d 16, kernel 5, stride 1, padding 0".
std::string describe(const LayerSpec& layer);
/// "[6x14x14]"
std::string describe(const Shape& shape);

/// LeNet-5 with ReLU and max pooling. For 28x28 images of one channel it has 61,706 parameters for
/// 10 classes. Images of other sizes have at least 12x12 pixels.
ModelSpec lenet5(std::int64_t classes = 10, const Shape& image = {1, 28, 28});

/// Dense layers with ReLU between them. `widths` is {inputs, hidden..., classes}, at least two
/// numbers. The inputs may be images with that many values.
ModelSpec mlp(const std::vector<std::int64_t>& widths);

/// An LSTM and a dense layer, for sequences such as images of one channel read row by row: 24,458
/// parameters for 64 hidden units and 10 classes. With `every_step`, it has outputs for each step.
ModelSpec lstm(std::int64_t hidden = 64, std::int64_t classes = 10,
               const Shape& sequence = {28, 28}, bool every_step = false);

/// ResNet-20 for 32x32 images of three channels (He et al. 2016, section 4.2; arXiv 1512.03385).
/// Three stages of three blocks have 16, 32 and 64 channels, batch normalization, and projection
/// shortcuts where the shape changes: 272,474 parameters for 10 classes. Takes images of any size.
ModelSpec resnet20(std::int64_t classes = 10, const Shape& image = {3, 32, 32});

/// ResNet-50 for 224x224 images of three channels (He et al. 2016, table 1). As in torchvision, the
/// 3x3 convolution of a bottleneck has the stride: 25,557,032 parameters for 1000 classes. Takes
/// images of any size.
ModelSpec resnet50(std::int64_t classes = 1000, const Shape& image = {3, 224, 224});

/// Returns a model above by the name that fast-train --model takes: "lenet", "mlp"
/// (784-256-outputs), "mlp:512-256" (hidden widths), "lstm", "lstm:128" (hidden units), "resnet20"
/// or "resnet50". `sample` is the shape of samples. If it is empty, or the model cannot take it,
/// the model has the input that it is known by. With `per_step`, an LSTM has outputs for each step.
/// Throws Error(argument) with the choices on another name.
ModelSpec model_by_name(const std::string& name, std::int64_t outputs, const Shape& sample = {},
                        bool per_step = false);

// Models in TOML files; docs/how-to/own-model.md describes the format.

/// What the data requires of a model.
struct ModelEnds {
  Shape sample;          ///< the input, unless the file gives one; empty: the file must give one
  std::int64_t outputs;  ///< units of a dense layer without the key "units"
};

/// Reads the model of a file. Throws Error(data) if the file cannot be read. Throws Error(argument)
/// with file, line and layer for unknown layers and keys, for values of a wrong type and for layers
/// that do not fit.
ModelSpec read_model(const std::string& path, const ModelEnds& ends);
/// Reads the model from the text of such a file.
ModelSpec parse_model(const std::string& text, const std::string& path, const ModelEnds& ends);

/// The names of all layers in model files, as "conv2d".
std::vector<std::string_view> layer_names();

/// A table for people: each layer with the shape of its output and the number of its parameters.
std::string describe(const ModelSpec& spec);

}  // namespace fast::nn
