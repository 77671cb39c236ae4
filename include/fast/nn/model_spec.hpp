// What a model is, whatever device and scalar type it will run on: an input shape and a list of
// layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace fast::nn {

/// Of one sample: {features} for a vector, {channels, height, width} for an image.
using Shape = std::vector<std::int64_t>;

/// y = W x + b with W [units x inputs]; takes vectors.
struct Dense {
  std::int64_t units;
};

/// Cross-correlation with square kernels W [channels x input channels x kernel x kernel] and one
/// bias a channel; takes images, zeros around them.
struct Conv2d {
  std::int64_t channels;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// max(x, 0); its derivative at 0 is 0.
struct Relu {};

/// The largest of each size x size window; rows and columns that fill no window are left out. The
/// gradient goes to the first largest.
struct MaxPool {
  std::int64_t size = 2;
  std::int64_t stride = 2;
};

/// Image to vector, channels slowest.
struct Flatten {};

using LayerSpec = std::variant<Dense, Conv2d, Relu, MaxPool, Flatten>;

/// A feed-forward model; its last layer's outputs, a vector, are the logits of the classes.
struct ModelSpec {
  std::string name;
  Shape input;
  std::vector<LayerSpec> layers;
};

/// A parameter tensor and its place in the model's flat vector of parameters.
struct ParameterSpec {
  std::string name;  ///< "conv1.weight", "fc2.bias": convolutions and dense layers counted from 1
  Shape shape;
  std::size_t offset;   ///< in elements
  std::size_t count;    ///< of elements
  std::int64_t fan_in;  ///< inputs that a unit sums over; 0 for a bias
  std::size_t layer;    ///< index into ModelSpec::layers
};

/// The input's shape and that of each layer's output, layers.size() + 1 in all. Throws
/// Error(argument) naming model and layer when a layer does not fit its input or has sizes that are
/// not positive, and when the outputs are no vector.
std::vector<Shape> shapes(const ModelSpec& spec);

/// All parameters in order, without gaps. Throws as shapes() does.
std::vector<ParameterSpec> parameters(const ModelSpec& spec);
std::size_t parameter_count(const ModelSpec& spec);

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

}  // namespace fast::nn
