#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

template <class T>
class EmbeddingLayer final : public Layer<T> {
 public:
  EmbeddingLayer(const Embedding& spec, const Shape& in)
      : steps_(in[0]), tokens_(spec.tokens), width_(spec.width) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    rows_.resize(static_cast<std::size_t>(steps_ * pass.count));
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      rows_[r] = token_of(x[r]);
      std::copy_n(parameters + rows_[r] * width_, width_, y + static_cast<Index>(r) * width_);
    }
  }

  /// Tokens have no gradient.
  void backward(const T*, T* gradients, const T*, const T*, const T* dy, T* dx,
                Index count) override {
    std::fill_n(gradients, parameter_count(), T{0});
    for (std::size_t r = 0; r < rows_.size(); ++r, dy += width_) {
      T* row = gradients + rows_[r] * width_;
      for (Index i = 0; i < width_; ++i) row[i] += dy[i];
    }
    if (dx != nullptr) std::fill_n(dx, steps_ * count, T{0});
  }

  Index parameter_count() const override { return tokens_ * width_; }

 private:
  /// Inputs are numbers; what arithmetic has done to them may leave them beside a whole one.
  Index token_of(T value) const {
    const double nearest = std::round(static_cast<double>(value));
    demand(std::fabs(static_cast<double>(value) - nearest) < 1e-3 && is_token(nearest, tokens_),
           "embedding: token {}; whole numbers from 0 to {} are required. Is the data normalized?",
           value, tokens_ - 1);
    return static_cast<Index>(nearest);
  }

  Index steps_, tokens_, width_;
  std::vector<Index> rows_;  ///< of the weights, by step
};

struct EmbeddingKind : KindOf<Embedding, EmbeddingLayer> {
  static constexpr const char* prefix = "embedding";

  static void keys(Embedding& embedding, Keys& keys) {
    keys.required("tokens", embedding.tokens);
    keys.required("width", embedding.width);
  }
  static std::string describe(const Embedding& embedding) {
    return fmt::format("embedding {} tokens, width {}", embedding.tokens, embedding.width);
  }
  static Shape output(const Embedding& embedding, const Shape& in) {
    demand(in.size() == 1, "it takes vectors of tokens, its input is {}", nn::describe(in));
    demand(embedding.tokens > 0 && embedding.width > 0, "tokens and width must be positive");
    return {in[0], embedding.width};
  }
  /// A fan-in of 2 gives a variance of 1, as in PyTorch.
  static void list_tensors(const Embedding& embedding, const Shape&, Inventory& to) {
    to.add_weight("weight", {embedding.tokens, embedding.width}, 2);
  }
  static std::string to_onnx(const Embedding&, const std::string& in, OnnxGraph& graph) {
    const std::string tokens = graph.node("Cast", {graph.node("Round", {in})},
                                          {onnx::attribute("to", std::int64_t{onnx::int64_type})});
    return graph.node("Gather", {graph.tensor("weight"), tokens});
  }
};

template <class T>
class PositionLayer final : public Layer<T> {
 public:
  PositionLayer(const Position&, const Shape& in) : size_(elements_of(in)) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    for (Index s = 0; s < pass.count; ++s) add(x + s * size_, parameters, y + s * size_, size_);
  }
  void backward(const T*, T* gradients, const T*, const T*, const T* dy, T* dx,
                Index count) override {
    std::copy_n(dy, size_, gradients);
    for (Index s = 1; s < count; ++s)
      add(static_cast<const T*>(gradients), dy + s * size_, gradients, size_);
    if (dx != nullptr) std::copy_n(dy, count * size_, dx);
  }

  Index parameter_count() const override { return size_; }

 private:
  Index size_;
};

struct PositionKind : KindOf<Position, PositionLayer> {
  static constexpr const char* prefix = "position";

  static std::string describe(const Position&) { return prefix; }
  static Shape output(const Position&, const Shape& in) {
    demand_sequence(in);
    return in;
  }
  static void list_tensors(const Position&, const Shape& in, Inventory& to) {
    to.add_weight("weight", in, 2);  // as an embedding of the step's number
  }
  static std::string to_onnx(const Position&, const std::string& in, OnnxGraph& graph) {
    return graph.node("Add", {in, graph.tensor("weight")});
  }
};

}  // namespace

const LayerEntry entries::embedding = entry_for<EmbeddingKind>();
const LayerEntry entries::position = entry_for<PositionKind>();

}  // namespace fast::nn
