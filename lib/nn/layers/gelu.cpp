#include "nn/layers/gelu.hpp"

#include "nn/layers/elementwise.hpp"

namespace fast::nn {
namespace {

struct GeluKind : ElementwiseKind<Gelu> {
  static std::string describe(const Gelu&) { return "gelu"; }
};

}  // namespace

const Row rows::gelu = row_from<GeluKind>();

}  // namespace fast::nn
