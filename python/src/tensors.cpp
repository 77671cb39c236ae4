#include "tensors.hpp"

#include <nanobind/stl/string.h>

#include <fast/core/error.hpp>
#include <optional>
#include <string>

#ifdef FAST_PYTHON_CUDA
#include <fast/cuda/accelerator.hpp>
#endif

namespace fast::python {
namespace {

namespace nb = nanobind;
using Code = nb::dlpack::dtype_code;

std::optional<DType> float_type(nb::dlpack::dtype type) {
  const auto code = static_cast<Code>(type.code);
  if (code == Code::Float && type.bits == 32) return DType::f32;
  if (code == Code::Float && type.bits == 64) return DType::f64;
  if (code == Code::Float && type.bits == 16) return DType::f16;
  if (code == Code::Bfloat && type.bits == 16) return DType::bf16;
  return std::nullopt;
}

bool counts(nb::dlpack::dtype type) {
  const auto code = static_cast<Code>(type.code);
  return code == Code::Int || code == Code::UInt || code == Code::Bool;
}

std::string python_type_name(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__")));
}

Device place_of(const nb::ndarray<>& array, const std::string& name) {
  const int type = array.device_type();
  if (type == nb::device::cuda::value) return {Device::Kind::cuda, array.device_id()};
  require(type == nb::device::cpu::value || type == nb::device::cuda_host::value,
          ErrorKind::argument,
          "Worker: tensor \"{}\" is on a device of DLPack's type {}; host memory or that of a GPU "
          "of NVIDIA is required, so move the model there, as by module.cpu()",
          name, type);
  return {};
}

nb::ndarray<> shared_memory_of(nb::handle array, const std::string& name) {
  nb::ndarray<> shared;
  require(nb::try_cast(array, shared), ErrorKind::argument,
          "Worker: tensor \"{}\" is a {} whose memory cannot be shared; give a writable array of "
          "NumPy, PyTorch or another library with DLPack, in the byte order of this machine",
          name, python_type_name(array));
  return shared;
}

TensorView view_of_array(const nb::ndarray<>& array, std::string name, DType dtype, bool buffer) {
  TensorView view;
  view.device = place_of(array, name);
  view.name = std::move(name);
  view.data = const_cast<void*>(static_cast<const void*>(array.data()));
  view.dtype = dtype;
  view.role = buffer ? Role::buffer : Role::parameter;
  for (std::size_t side = 0; side < array.ndim(); ++side) {
    view.shape.push_back(static_cast<std::int64_t>(array.shape(side)));
    view.strides.push_back(array.stride(side));
  }
  return view;
}

}  // namespace

Tensors bytes_of(nb::handle list) {
  Tensors tensors;
  for (const nb::handle item : list) {
    auto name = nb::cast<std::string>(item[0]);
    nb::ndarray<> array = shared_memory_of(item[1], name);
    const DType dtype = float_type(array.dtype()).value_or(DType::u8);
    tensors.views.push_back(view_of_array(array, std::move(name), dtype, false));
    tensors.owners.push_back(std::move(array));
  }
  return tensors;
}

Tensors tensors_of(nb::handle list) {
  Tensors tensors;
  for (const nb::handle item : list) {
    auto name = nb::cast<std::string>(item[0]);
    nb::ndarray<> array = shared_memory_of(item[1], name);
    std::optional<DType> dtype = float_type(array.dtype());
    if (nb::object(item[3]).is_valid() && !nb::object(item[3]).is_none()) dtype = DType::bf16;
    if (!dtype && counts(array.dtype())) continue;
    require(dtype.has_value(), ErrorKind::argument,
            "Worker: tensor \"{}\" has elements of {} bits of DLPack's type {}; float32, float64, "
            "bfloat16 or float16 is required",
            name, array.dtype().bits, array.dtype().code);
    tensors.views.push_back(view_of_array(array, std::move(name), *dtype, nb::cast<bool>(item[2])));
    tensors.owners.push_back(std::move(array));
  }
  return tensors;
}

Device device_of(const std::vector<TensorView>& views) {
  return views.empty() ? Device{} : views.front().device;
}

#ifdef FAST_PYTHON_CUDA

namespace {

void require_one_device(const std::vector<TensorView>& views) {
  for (const TensorView& view : views) {
    require(view.device == device_of(views), ErrorKind::argument,
            "Worker: {} is in {}, {} in {}; move the model to one device", describe(view),
            describe(view.device), describe(views.front()), describe(device_of(views)));
  }
}

}  // namespace

const bool has_cuda = true;

/// Its stream is its own. The end of a round gets PyTorch's stream. Before other calls, models.py
/// waits for what a step has begun.
std::shared_ptr<Accelerator> accelerator_of(const std::vector<TensorView>& views,
                                            Seconds deadline) {
  require_one_device(views);
  const Device device = device_of(views);
  if (device == Device{}) return nullptr;
  return cuda::accelerator(device.index, deadline);
}

#else

const bool has_cuda = false;

std::shared_ptr<Accelerator> accelerator_of(const std::vector<TensorView>& views, Seconds) {
  for (const TensorView& view : views) {
    require(view.device == Device{}, ErrorKind::argument,
            "Worker: tensor \"{}\" is in the memory of cuda:{}, and this package was built without "
            "fast::cuda; install it with that, by pip install . "
            "--config-settings=cmake.define.FAST_CUDA=ON, or move the model to host memory, as by "
            "module.cpu()",
            view.name, view.device.index);
  }
  return nullptr;
}

#endif

}  // namespace fast::python
