#include "nn/layers/gelu.hpp"

#include "nn/layers/elementwise.hpp"

namespace fast::nn {
namespace {

struct GeluKind : ElementwiseKind<Gelu> {
  static std::string describe(const Gelu&) { return "gelu"; }
};

}  // namespace

const LayerEntry entries::gelu = entry_for<GeluKind>();

}  // namespace fast::nn
