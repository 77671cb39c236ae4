#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

template <class T>
class GroupNormLayer final : public Layer<T> {
 public:
  GroupNormLayer(const GroupNorm& spec, const Shape& in)
      : spec_(spec), channels_(in[0]), area_(in[1] * in[2]) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    const auto needed =
        static_cast<std::size_t>(block_count<T>(pass.count) * spec_.groups * lanes<T>) * sizeof(T);
    for (AlignedBuffer* buffer : {&mean_, &reciprocal_})
      if (buffer->size_bytes() < needed) *buffer = AlignedBuffer(needed);
    group_norm_forward({channels_, area_, pass.count}, spec_.groups, static_cast<T>(spec_.epsilon),
                       parameters, parameters + channels_, x, y, mean_.as<T>().data(),
                       reciprocal_.as<T>().data());
  }

  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    group_norm_backward({channels_, area_, count}, spec_.groups, parameters, x, dy,
                        static_cast<const T*>(mean_.as<T>().data()),
                        static_cast<const T*>(reciprocal_.as<T>().data()), gradients,
                        gradients + channels_, dx);
  }

  Index parameter_count() const override { return 2 * channels_; }

 private:
  GroupNorm spec_;
  Index channels_, area_;
  AlignedBuffer mean_, reciprocal_;
};

struct GroupNormKind : KindOf<GroupNorm, GroupNormLayer> {
  static constexpr const char* prefix = "gn";

  static void keys(GroupNorm& norm, Keys& keys) {
    keys.required("groups", norm.groups);
    keys.optional("epsilon", norm.epsilon);
  }
  static std::string describe(const GroupNorm& norm) {
    return fmt::format("group norm {}", norm.groups);
  }
  static Shape output(const GroupNorm& norm, const Shape& in) {
    demand_image(in);
    demand(norm.groups > 0 && in[0] % norm.groups == 0,
           "{} channels do not split into {} groups of equal size", in[0], norm.groups);
    demand(norm.epsilon > 0, "epsilon {} is not positive", norm.epsilon);
    return in;
  }
  static void list_tensors(const GroupNorm&, const Shape& in, Inventory& to) {
    to.add_constant("weight", {in[0]}, 1);
    to.add_constant("bias", {in[0]}, 0);
  }
  static std::string to_onnx(const GroupNorm&, const std::string&, OnnxGraph&) {
    fail(ErrorKind::argument,
         "to_onnx: group normalization is not in operator set {}; export batch norm or none",
         onnx::operator_set);
  }
};

}  // namespace

const LayerEntry entries::group_norm = entry_for<GroupNormKind>();

}  // namespace fast::nn
