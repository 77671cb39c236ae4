#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/noise.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/sequence.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// The parameters and buffers of the body come first, then those of the shortcut.
template <class T>
class ResidualLayer final : public Layer<T> {
 public:
  ResidualLayer(const Residual& spec, const Shape& input)
      : input_(input),
        output_(shapes_through(spec.body, input).back()),
        body_(spec.body, input),
        shortcut_(spec.shortcut, input),
        projected_(!spec.shortcut.empty()) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const T* body = body_.forward(parameters, x, pass);
    const T* shortcut =
        shortcut_.forward(parameters + body_.parameter_count(), x,
                          {pass.count, pass.training, pass.buffers + body_.buffer_count(),
                           pass.noise, place_of_shortcut(pass.place)});
    add(body, shortcut, y, stored_elements<T>(output_, pass.count));
  }

  void backward(const T* parameters, T* gradients, const T*, const T*, const T* dy, T* dx,
                Index count) override {
    body_.backward(parameters, gradients, dy, dx, count);
    const T* shortcut = projected_ ? project_back(parameters, gradients, dy, dx, count) : dy;
    if (dx != nullptr)
      add(static_cast<const T*>(dx), shortcut, dx, stored_elements<T>(input_, count));
  }

  Index parameter_count() const override {
    return body_.parameter_count() + shortcut_.parameter_count();
  }
  Index buffer_count() const override { return body_.buffer_count() + shortcut_.buffer_count(); }

 private:
  const T* project_back(const T* parameters, T* gradients, const T* dy, const T* dx, Index count) {
    const Index first = body_.parameter_count();
    const auto needed = static_cast<std::size_t>(stored_elements<T>(input_, count)) * sizeof(T);
    if (grads_.size_bytes() < needed) grads_ = AlignedBuffer(needed);
    T* result = dx == nullptr ? nullptr : grads_.as<T>().data();
    shortcut_.backward(parameters + first, gradients + first, dy, result, count);
    return result;
  }

  Shape input_, output_;
  Sequence<T> body_, shortcut_;
  bool projected_;
  AlignedBuffer grads_;
};

struct ResidualKind : KindOf<Residual, ResidualLayer> {
  static void keys(Residual& residual, Keys& keys) {
    keys.layers("body", residual.body);
    keys.layers("shortcut", residual.shortcut);
  }
  static std::string describe(const Residual& residual) {
    return fmt::format("residual of {} layers", residual.body.size());
  }
  static Shape output(const Residual& residual, const Shape& in) {
    demand(!residual.body.empty(), "its body is empty");
    const Shape body = shapes_through(residual.body, in, "body").back();
    const Shape shortcut = shapes_through(residual.shortcut, in, "shortcut").back();
    demand(body == shortcut,
           "its body gives {}, its shortcut {}; outputs of one shape are required",
           nn::describe(body), nn::describe(shortcut));
    return body;
  }
  static void list_tensors(const Residual& residual, const Shape& in, Inventory& to) {
    to.add(residual.body, in);
    to.add(residual.shortcut, in);
  }
  static std::string to_onnx(const Residual& residual, const std::string& in, OnnxGraph& graph) {
    const std::string body = graph.add(residual.body, in);
    return graph.node("Add", {body, graph.add(residual.shortcut, in)});
  }
};

}  // namespace

const LayerEntry entries::residual = entry_for<ResidualKind>();

}  // namespace fast::nn
