// What a model is, whatever device and scalar type it will run on: an input shape and a list of
// layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace fast::nn {

/// Of one sample: {features} for a vector, {steps, features} for a sequence, {channels, height,
/// width} for an image.
using Shape = std::vector<std::int64_t>;

/// y = W x + b with W [units x inputs]; takes vectors.
struct Dense {
  std::int64_t units;
};

/// Cross-correlation with square kernels W [channels x input channels x kernel x kernel] and, with
/// `bias`, one bias a channel; takes images, zeros around them.
struct Conv2d {
  std::int64_t channels;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = true;
};

/// Each channel of an image to mean 0 and variance 1 over the batch, then times weight plus bias
/// (Ioffe & Szegedy 2015, arXiv 1502.03167). In evaluation running statistics, the layer's buffers,
/// stand in: running = (1 - momentum)·running + momentum·batch's, the variance there being the
/// unbiased one. What PyTorch's BatchNorm2d computes.
struct BatchNorm {
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// Each group of an image's channels to mean 0 and variance 1 over the sample, then times weight
/// plus bias, one a channel (Wu & He 2018, arXiv 1803.08494). No buffers, the same in evaluation.
struct GroupNorm {
  std::int64_t groups;
  double epsilon = 1e-5;
};

/// max(x, 0); its derivative at 0 is 0.
struct Relu {};

/// x·σ(x), σ(x) = 1 / (1 + exp(-x)), of values of any shape (Elfwing et al. 2018, arXiv 1702.03118;
/// also called Swish).
struct Silu {};

/// The largest of each size x size window; rows and columns that fill no window are left out. The
/// gradient goes to the first largest. Padding, at most half a window, is less than any value.
struct MaxPool {
  std::int64_t size = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

/// Image to vector, channels slowest; sequence to vector, steps slowest.
struct Flatten {};

/// The mean of each channel: image to vector.
struct GlobalAveragePool {};

/// Long short-term memory (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000)
/// over a sequence of vectors x: gates i, f, g, o of `hidden` units each, i = σ(W_i x + U_i h +
/// b_i) and so f and o, g = tanh(W_g x + U_g h + b_g); c = f·c + i·g, h = o·tanh(c); c and h begin
/// as zeros. W is [4 hidden x inputs], U [4 hidden x hidden], gates in that order (PyTorch's); one
/// bias. Gives the last h, a vector, or with `every_step` the sequence of all.
struct Lstm {
  std::int64_t hidden;
  bool every_step = false;
};

struct LayerSpec;

/// body(x) + shortcut(x) (He et al. 2016, arXiv 1512.03385); an empty shortcut is x itself. Both
/// give images of one shape.
struct Residual {
  std::vector<LayerSpec> body;
  std::vector<LayerSpec> shortcut;
};

struct LayerSpec : std::variant<Dense, Conv2d, Relu, MaxPool, Flatten, BatchNorm, GroupNorm,
                                GlobalAveragePool, Lstm, Residual, Silu> {
  using variant::variant;
};

/// A model; its last layer's outputs, a vector, are the logits of the classes.
struct ModelSpec {
  std::string name;
  Shape input;
  std::vector<LayerSpec> layers;
};

/// A parameter tensor and its place in the model's flat vector of parameters; or a buffer's, in
/// that of buffers.
struct ParameterSpec {
  std::string name;  ///< "conv1.weight", "fc2.bias", "bn1.running_mean": each kind counted from 1
  Shape shape;
  std::size_t offset;   ///< in elements
  std::size_t count;    ///< of elements
  std::int64_t fan_in;  ///< inputs that a unit sums over; 0 for what is no weight of such a sum
  double initial;       ///< where fan_in is 0: 1 for scales and variances, 0 for the rest
  std::size_t layer;    ///< index into ModelSpec::layers
};

/// The input's shape and that of each layer's output, layers.size() + 1 in all. Throws
/// Error(argument) naming model and layer when a layer does not fit its input or has sizes that are
/// not positive, and when the outputs are no vector.
std::vector<Shape> shapes(const ModelSpec& spec);

/// The same of layers that are part of a model. Throws when they do not fit each other.
std::vector<Shape> shapes_through(const std::vector<LayerSpec>& layers, const Shape& input);

/// Whether a model takes such samples: vectors and sequences any of as many values, images their
/// own shape, where [28x28] is one of a channel.
bool takes(const ModelSpec& spec, const Shape& sample);

/// All parameters in order, without gaps. Throws as shapes() does.
std::vector<ParameterSpec> parameters(const ModelSpec& spec);
std::size_t parameter_count(const ModelSpec& spec);

/// All buffers (running statistics) likewise.
std::vector<ParameterSpec> buffers(const ModelSpec& spec);

/// "conv2d 16, kernel 5, stride 1, padding 0", for messages.
std::string describe(const LayerSpec& layer);
/// "[6x14x14]"
std::string describe(const Shape& shape);

/// LeNet-5 as it is trained today (ReLU, max pooling): 28x28 images of one channel, 61,706
/// parameters for 10 classes.
ModelSpec lenet5(std::int64_t classes = 10);

/// Dense layers with ReLU between them: widths = {inputs, hidden..., classes}, two at least. The
/// inputs may be images of that many values.
ModelSpec mlp(const std::vector<std::int64_t>& widths);

/// Long short-term memory and a dense layer for sequences, such as images of one channel read row
/// by row: 24,458 parameters for 64 hidden units and 10 classes.
ModelSpec lstm(std::int64_t hidden = 64, std::int64_t classes = 10,
               const Shape& sequence = {28, 28});

/// ResNet-20 for 32x32 images of three channels (He et al. 2016, section 4.2; arXiv 1512.03385):
/// three stages of three blocks with 16, 32 and 64 channels, batch normalization, projection
/// shortcuts where the shape changes; 272,474 parameters for 10 classes.
ModelSpec resnet20(std::int64_t classes = 10);

/// ResNet-50 for 224x224 images of three channels (He et al. 2016, table 1), with the strides of
/// its bottlenecks in the 3x3 convolutions, as PyTorch's torchvision has it: 25,557,032 parameters
/// for 1000 classes.
ModelSpec resnet50(std::int64_t classes = 1000);

}  // namespace fast::nn
