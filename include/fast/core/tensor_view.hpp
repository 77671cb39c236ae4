// A named view of a framework's tensor: what the library needs to know of a model, and all it
// needs.
#pragma once

#include <fast/core/element.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fast {

/// Where a tensor's memory is.
struct Device {
  enum class Kind : std::uint8_t { host, cuda };
  Kind kind = Kind::host;
  int index = 0;
  bool operator==(const Device&) const = default;
};
/// "host memory", "the memory of device 1", for messages.
std::string describe(Device device);

/// Parameters are trained; buffers (batch-norm statistics) are only carried along and averaged.
enum class Role : std::uint8_t { parameter, buffer };

/// Non-owning view of one tensor. The memory stays the framework's and must stay where it is for as
/// long as the view is in use.
struct TensorView {
  std::string name;
  void* data = nullptr;
  std::vector<std::int64_t> shape;  ///< row-major; empty for a scalar
  DType dtype = DType::f32;
  Role role = Role::parameter;
  Device device{};
  /// Strides in elements, one a side; empty: contiguous. Others than those of contiguous row-major
  /// memory are refused where the tensor is read.
  std::vector<std::int64_t> strides{};

  /// Product of the shape; 1 for a scalar. Throws Error on negative sides or overflow.
  std::size_t element_count() const;
  std::size_t size_bytes() const;
  bool is_contiguous() const;
};

/// "name [120x400] f32", for messages.
std::string describe(const TensorView& view);

/// Views of raw memory, for a user's own training loop.
template <class T>
TensorView view_of(std::string name, std::span<T> values, Role role = Role::parameter) {
  return {std::move(name),
          values.data(),
          {static_cast<std::int64_t>(values.size())},
          dtype_of<T>,
          role,
          Device{},
          {}};
}

// How a model's tensors lie in one packed vector (a slot's), and the runs of memory to copy or mix.

/// A run of elements that is contiguous in the model's memory and in the packed vector.
struct Segment {
  void* data = nullptr;          ///< the model's memory
  std::size_t offset_bytes = 0;  ///< in the packed vector
  std::size_t element_count = 0;
  DType dtype = DType::f32;
  Role role = Role::parameter;
  std::size_t size_bytes() const { return element_count * fast::size_bytes(dtype); }
};

/// The packed layout of a model's floating-point tensors. Offsets follow from names, shapes and
/// types in their order alone, so that workers whose memory differs agree. Parameters come first,
/// then buffers. Each is grouped by type, and groups begin at multiples of 64 bytes. Tensors that
/// are neighbors in memory are merged to one segment.
class ParameterLayout {
 public:
  ParameterLayout() = default;

  /// Throws Error(argument) on an empty list, an empty or repeated name, a tensor that is null,
  /// zero-sized, misaligned, not contiguous or not in the memory of `device`, and on partly
  /// overlapping memory. Identical views (tied weights) count once. Integer tensors are left out.
  explicit ParameterLayout(std::vector<TensorView> views, Device device = {});

  const std::vector<TensorView>& views() const {
    return views_;
  }  ///< those exchanged, in packed order
  const std::vector<Segment>& segments() const { return segments_; }
  std::vector<Segment> tensors() const;                   ///< one segment a view: none merged
  std::size_t size_bytes() const { return size_bytes_; }  ///< of one packed vector
  std::size_t parameter_count() const { return parameter_count_; }
  Device device() const { return device_; }

  /// Hash over names, shapes, types, roles and order; equal on workers whose models fit each other.
  std::uint64_t hash() const { return hash_; }

  /// "61706 f32 parameters": for messages.
  std::string describe() const;

  /// The same layout over memory that has moved, or over that of the first view's device. Throws
  /// Error(mismatch) when names, shapes or types differ.
  ParameterLayout rebound(std::vector<TensorView> views) const;

  /// Throws Error(mismatch) naming the first tensor that `views` has elsewhere, or no longer: the
  /// framework has moved its memory without telling.
  void require_in_place(const std::vector<TensorView>& views) const;

  /// Copies the model's memory, which is the host's, to (from) a packed vector of size_bytes().
  void gather(std::byte* packed) const;
  void scatter(const std::byte* packed) const;

 private:
  std::vector<TensorView> views_;
  std::vector<Segment> segments_;
  std::size_t size_bytes_ = 0;
  std::size_t parameter_count_ = 0;
  std::uint64_t hash_ = 0;
  Device device_;
};

/// One line a tensor, for comparing two workers' models: "name [shape] dtype".
std::string manifest(const ParameterLayout& layout);

// An optimizer's step, as an averaging pass takes it in.

/// Adds to weights [first, first + weights.size()) of the packed vector what the optimizer makes of
/// their gradients. Called in order for ranges that cover each element once; with several
/// WorkerOptions::mixing_threads, by these at once, in any order. Empty: nothing to add. T is float
/// or double.
template <class T>
using PartUpdate = std::function<void(std::size_t first, std::span<T> weights)>;

}  // namespace fast
