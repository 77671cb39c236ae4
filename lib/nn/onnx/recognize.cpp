#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/nn/onnx.hpp>

namespace fast::nn {
namespace {

bool has(const std::vector<TensorView>& tensors, const ModelSpec& spec) {
  std::vector<ParameterSpec> all = parameters(spec);
  for (ParameterSpec& buffer : buffers(spec)) all.push_back(std::move(buffer));
  return all.size() == tensors.size() &&
         std::all_of(all.begin(), all.end(), [&](const ParameterSpec& own) {
           return std::any_of(tensors.begin(), tensors.end(), [&](const TensorView& view) {
             return view.name == own.name && view.shape == own.shape;
           });
         });
}

}  // namespace

ModelSpec recognize(const std::vector<TensorView>& tensors) {
  std::vector<std::int64_t> widths;
  for (int layer = 1;; ++layer) {
    const std::string name = fmt::format("fc{}.weight", layer);
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const TensorView& view) { return view.name == name; });
    if (found == tensors.end() || found->shape.size() != 2) break;
    if (widths.empty()) widths.push_back(found->shape[1]);
    widths.push_back(found->shape[0]);
  }
  if (widths.size() >= 2 && *std::min_element(widths.begin(), widths.end()) > 0) {
    for (const ModelSpec& spec : {lenet5(widths.back()), resnet20(widths.back()), mlp(widths),
                                  lstm(widths.front(), widths.back())}) {
      if (has(tensors, spec)) return spec;
    }
  }
  fail(ErrorKind::argument,
       "these {} tensors are those of no model known here (lenet5, resnet20, mlp, lstm); describe "
       "the "
       "model by a ModelSpec",
       tensors.size());
}

}  // namespace fast::nn
