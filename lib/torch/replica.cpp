#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/torch/replica.hpp>
#include <map>
#include <optional>
#include <set>

namespace fast::torch {
namespace {

struct Part {
  std::string name;
  Role role;
  at::Tensor tensor;
  void* place;  ///< where the tensor's memory was
};

std::optional<DType> dtype_of_scalar(c10::ScalarType type) {
  using enum c10::ScalarType;
  constexpr c10::ScalarType types[] = {Float, Double, BFloat16, Half, Char, Byte, Int, Long};
  const auto* found = std::ranges::find(types, type);  // in the order of DType
  if (found == std::end(types)) return std::nullopt;
  return static_cast<DType>(found - std::begin(types));
}

/// Sides in the order of memory where the tensor is dense, whatever its format; as they are with
/// their strides, to be refused, where it has gaps.
void describe_memory(const at::Tensor& tensor, TensorView& view) {
  view.shape = tensor.sizes().vec();
  view.strides = tensor.strides().vec();
  if (!tensor.is_non_overlapping_and_dense()) return;
  std::vector<std::size_t> places;  // sides of 1 stay where they are: their strides say nothing
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] > 1) places.push_back(d);
  }
  std::vector<std::size_t> order = places;
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return view.strides[a] > view.strides[b]; });
  for (std::size_t k = 0; k < order.size(); ++k) view.shape[places[k]] = tensor.sizes()[order[k]];
  view.strides.clear();
}

Device place_of(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return {};
  return {Device::Kind::cuda, tensor.device().index()};
}

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// What a stream of CUDA is to CUDA. LibTorch 1 does not tell.
template <class Stream>
std::optional<void*> handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) return stream.native_handle();
  return {};
}

TensorView view_of(const Part& part) {
  const at::Tensor& tensor = part.tensor;
  require(
      tensor.layout() == c10::kStrided && !tensor.is_quantized(), ErrorKind::argument,
      "torch: tensor \"{}\" is sparse or quantized; dense ones are required, leave it frozen out "
      "of the module",
      part.name);
  const auto dtype = dtype_of_scalar(tensor.scalar_type());
  require(dtype.has_value(), ErrorKind::argument,
          "torch: tensor \"{}\" is of type {}; f32, f64, bf16, f16 and integers are supported, so "
          "convert it to one of these",
          part.name, c10::toString(tensor.scalar_type()));
  TensorView view{part.name, tensor.data_ptr(), {}, *dtype, part.role, Device{}, {}};
  describe_memory(tensor, view);
  return view;
}

/// Those that train, or those that do not.
std::vector<Part> parameters_of(const ::torch::nn::Module& module, bool train) {
  std::vector<Part> parts;
  for (const auto& item : module.named_parameters())
    if (item.value().requires_grad() == train)
      parts.push_back({item.key(), Role::parameter, item.value(), nullptr});
  return parts;
}

/// What takes part.
std::vector<Part> parts_of(const ::torch::nn::Module& module) {
  std::vector<Part> parts = parameters_of(module, true);
  require(!parts.empty(), ErrorKind::argument,
          "torch: the module has {} parameters, and none that trains; one with requires_grad is "
          "required",
          parameters_of(module, false).size());
  for (const auto& item : module.named_buffers())
    if (item.value().defined() && item.value().numel() > 0)
      parts.push_back({item.key(), Role::buffer, item.value(), nullptr});
  return parts;
}

/// Moves tensors of one role and type into one block.
class Block {
 public:
  explicit Block(std::vector<Part*> parts) : parts_(std::move(parts)) {
    for (Part* part : parts_) old_.push_back(part->tensor.variable_data());
  }

  /// False, with everything as it was, where memory is shared with others or cannot move.
  bool move() {
    if (shared_with_others()) return false;
    std::map<const void*, std::int64_t> offsets;  // tied tensors share
    std::int64_t size = 0;
    for (const Part* part : parts_)
      if (offsets.emplace(part->tensor.data_ptr(), size).second) size += part->tensor.numel();
    memory_ = at::empty({size}, parts_.front()->tensor.options().requires_grad(false));
    try {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        const at::Tensor& from = old_[i];
        at::Tensor to = memory_.as_strided(from.sizes(), from.strides(), offsets[from.data_ptr()]);
        to.copy_(from);
        parts_[i]->tensor.set_data(to);
      }
    } catch (const c10::Error&) {
      for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->tensor.set_data(old_[i]);
      return false;
    }
    return true;
  }
  const at::Tensor& memory() const { return memory_; }

 private:
  /// Each tensor holds its storage, and so does each of its copies in old_.
  bool shared_with_others() const {
    std::map<const void*, std::set<const void*>> tensors;
    std::map<const void*, std::size_t> copies;
    for (const Part* part : parts_) {
      const void* storage = part->tensor.storage().unsafeGetStorageImpl();
      tensors[storage].insert(part->tensor.unsafeGetTensorImpl());
      ++copies[storage];
    }
    return std::ranges::any_of(parts_, [&](const Part* part) {
      const auto& storage = part->tensor.storage();
      const void* key = storage.unsafeGetStorageImpl();
      return static_cast<std::size_t>(storage.use_count()) > tensors[key].size() + copies[key];
    });
  }

  std::vector<Part*> parts_;
  std::vector<at::Tensor> old_;
  at::Tensor memory_;
};

}  // namespace

struct Replica::Impl {
  std::vector<Part> parts, resting;            ///< that take part; parameters that do not train
  std::vector<TensorView> views, frozen, own;  ///< `own`: of the module's memory
  bool flat = false;
  /// The module's memory and its mirror: whole blocks where they are flat.
  std::vector<std::pair<at::Tensor, at::Tensor>> mirrors;

  std::vector<at::Tensor> blocks;
  const ::torch::nn::Module& module;

  Impl(const ::torch::nn::Module& module_, const ReplicaOptions& options)
      : parts(parts_of(module_)), resting(parameters_of(module_, false)), module(module_) {
    const at::NoGradGuard no_gradients;
    for (const Part& part : parts) views.push_back(fast::torch::view_of(part));
    const ParameterLayout checked(views);  // before anything moves
    if (options.flat) flatten();
    views.clear();
    for (Part& part : parts) {
      part.place = part.tensor.data_ptr();
      views.push_back(fast::torch::view_of(part));
    }
    own = views;
    for (std::size_t i = 0; i < parts.size(); ++i) own[i].device = place_of(parts[i].tensor);
    if (options.in_place) {
      views = own;
      settle();
    }
    const bool away =
        std::ranges::any_of(parts, [](const Part& part) { return !part.tensor.is_cpu(); });
    if (options.mirror || (away && !options.in_place)) mirror();
    find_frozen();
  }

  void settle() const {
    const at::Tensor& one = parts.front().tensor;
    if (one.is_cuda()) current_stream(one.device()).synchronize();
  }

  void find_frozen() {
    std::set<const void*> taking_part;
    for (const Part& part : parts) taking_part.insert(part.place);
    for (const Part& part : resting) {
      const at::Tensor& tensor = part.tensor;
      const bool is_plain = tensor.is_cpu() && tensor.layout() == c10::kStrided &&
                            tensor.is_non_overlapping_and_dense() && tensor.numel() > 0;
      if (is_plain && dtype_of_scalar(tensor.scalar_type()) && !tensor.is_quantized() &&
          !taking_part.contains(tensor.data_ptr()))
        frozen.push_back(fast::torch::view_of(part));
    }
  }

  void flatten() {
    std::map<std::pair<Role, c10::ScalarType>, std::vector<Part*>> groups;
    for (Part& part : parts) groups[{part.role, part.tensor.scalar_type()}].push_back(&part);
    flat = true;
    for (auto& [key, members] : groups) {
      if (!is_floating(*dtype_of_scalar(key.second))) continue;
      Block block(std::move(members));
      const bool moved = block.move();
      flat = flat && moved;
      if (moved) blocks.push_back(block.memory());
    }
  }

  /// Views point to host copies: of whole blocks, and of each tensor that lies in none.
  void mirror() {
    const auto copy_of = [&](const at::Tensor& tensor) {
      const bool pinned = tensor.is_cuda();
      at::Tensor host = at::empty_strided(tensor.sizes(), tensor.strides(),
                                          tensor.options().device(c10::kCPU).pinned_memory(pinned));
      mirrors.emplace_back(tensor, host);
      return host;
    };
    for (const at::Tensor& block : blocks) copy_of(block);
    const std::size_t blocks_mirrored = mirrors.size();
    std::map<const void*, void*> single;  // tied tensors share
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto* place = static_cast<const std::byte*>(parts[i].place);
      std::byte* host = nullptr;
      for (std::size_t b = 0; b < blocks_mirrored; ++b) {
        const auto* begin = static_cast<const std::byte*>(mirrors[b].first.data_ptr());
        if (place >= begin && place < begin + mirrors[b].first.nbytes())
          host = static_cast<std::byte*>(mirrors[b].second.data_ptr()) + (place - begin);
      }
      if (host == nullptr) {
        auto [known, is_new] = single.emplace(place, nullptr);
        if (is_new) known->second = copy_of(parts[i].tensor.detach()).data_ptr();
        host = static_cast<std::byte*>(known->second);
      }
      views[i].data = host;
    }
    copy(true);
  }

  void copy(bool to_host) const {
    const at::NoGradGuard no_gradients;
    for (const auto& [module, host] : mirrors) {
      if (to_host)
        at::Tensor(host).copy_(module);
      else
        at::Tensor(module).copy_(host);
    }
  }
};

Replica::Replica(::torch::nn::Module& module, ReplicaOptions options)
    : impl_(std::make_shared<Impl>(module, options)) {}

const std::vector<TensorView>& Replica::parameters() const { return impl_->views; }
std::vector<TensorView> Replica::in_place() const { return impl_->own; }
const std::vector<TensorView>& Replica::frozen() const { return impl_->frozen; }
bool Replica::is_flat() const { return impl_->flat; }
bool Replica::is_mirrored() const { return !impl_->mirrors.empty(); }
void Replica::to_host() const { impl_->copy(true); }
void Replica::to_module() const { impl_->copy(false); }

std::optional<void*> Replica::queue() const {
  const at::Tensor& one = impl_->parts.front().tensor;
  return one.is_cuda() ? handle_of(current_stream(one.device())) : std::nullopt;
}
void Replica::settle() const { impl_->settle(); }

void Replica::require_in_place() const {
  for (const Part& part : impl_->parts)
    require(part.tensor.data_ptr() == part.place, ErrorKind::mismatch,
            "torch: the memory of \"{}\" has moved since the Replica was made; make it after "
            "Module::to() and loading, and make it again when tensors are replaced",
            part.name);
  for (const Part& part : impl_->resting)
    require(!part.tensor.requires_grad(), ErrorKind::mismatch,
            "torch: \"{}\" trains now (requires_grad) and did not when the Replica was made; make "
            "it and the Worker again, on all workers",
            part.name);
#ifndef NDEBUG
  const auto parameters = impl_->module.named_parameters(), buffers = impl_->module.named_buffers();
  for (const Part& part : impl_->parts) {
    const auto& all = part.role == Role::parameter ? parameters : buffers;
    const at::Tensor* now = all.find(part.name);
    require(now != nullptr && now->is_same(part.tensor), ErrorKind::mismatch,
            "torch: the module has replaced \"{}\" since the Replica was made; make it again",
            part.name);
  }
#endif
}

}  // namespace fast::torch
