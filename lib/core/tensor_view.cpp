#include <fast/core/tensor_view.hpp>

#define XXH_INLINE_ALL
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/message.hpp"

namespace fast {

std::size_t TensorView::element_count() const {
  std::size_t count = 1;
  for (const std::int64_t side : shape) {
    require(side >= 0, ErrorKind::argument, "TensorView: \"{}\" has a negative side {}", name,
            side);
    require(!__builtin_mul_overflow(count, static_cast<std::size_t>(side), &count),
            ErrorKind::argument, "TensorView: \"{}\" has more elements than 2^64", name);
  }
  return count;
}

std::size_t TensorView::size_bytes() const { return element_count() * fast::size_bytes(dtype); }

bool TensorView::is_contiguous() const {
  if (strides.empty()) return true;
  if (strides.size() != shape.size()) return false;
  std::int64_t expected = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] > 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

std::string describe(Device device) {
  if (device.kind == Device::Kind::host) return "host memory";
  return fmt::format("the memory of device {}", device.index);
}

std::string describe(const TensorView& view) {
  return fmt::format("\"{}\" [{}] {}{}", printable(view.name), fmt::join(view.shape, "x"),
                     name(view.dtype), view.role == Role::buffer ? " buffer" : "");
}

namespace {

void check(const std::vector<TensorView>& views, Device device) {
  require(!views.empty(), ErrorKind::argument,
          "parameters: the model has none; hand over at least one tensor");
  std::unordered_set<std::string> names;
  for (const TensorView& view : views) {
    require(!view.name.empty(), ErrorKind::argument,
            "parameters: a tensor has no name; give each a name of its own");
    require(names.insert(view.name).second, ErrorKind::argument,
            "parameters: two tensors are named \"{}\"; names must differ", view.name);
    require(view.element_count() > 0, ErrorKind::argument,
            "parameters: {} has no elements; leave it out", describe(view));
    require(view.data != nullptr, ErrorKind::argument,
            "parameters: {} has no memory (null pointer)", describe(view));
    require(view.is_contiguous(), ErrorKind::argument,
            "parameters: {} has strides [{}]; contiguous row-major memory is required, hand over a "
            "contiguous copy that the model uses",
            describe(view), fmt::join(view.strides, ", "));
    require(
        reinterpret_cast<std::uintptr_t>(view.data) % size_bytes(view.dtype) == 0,
        ErrorKind::argument,
        "parameters: {} begins at an address that is not a multiple of its elements' size; hand "
        "over aligned memory",
        describe(view));
    require(view.device == device, ErrorKind::argument,
            "parameters: {} is in {}; {} is required, hand over a mirror of it there",
            describe(view), describe(view.device), describe(device));
  }
}

/// Drops views of exactly the same memory (tied weights) and refuses partial overlap.
std::vector<TensorView> without_ties(std::vector<TensorView> views) {
  std::vector<std::size_t> order(views.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto begin = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(views[i].data); };
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return begin(a) < begin(b); });
  std::vector<bool> tied(views.size());
  std::size_t last = order[0];
  for (std::size_t k = 1; k < order.size(); ++k) {
    const TensorView& next = views[order[k]];
    if (begin(order[k]) < begin(last) + views[last].size_bytes()) {
      const bool same = begin(order[k]) == begin(last) && next.dtype == views[last].dtype &&
                        next.element_count() == views[last].element_count();
      require(same, ErrorKind::argument,
              "parameters: {} and {} overlap in memory without being the same; hand each element "
              "over once",
              describe(views[last]), describe(next));
      tied[order[k]] = true;
    } else {
      last = order[k];
    }
  }
  std::vector<TensorView> kept;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!tied[i]) kept.push_back(std::move(views[i]));
  }
  return kept;
}

}  // namespace

ParameterLayout::ParameterLayout(std::vector<TensorView> views, Device device) : device_(device) {
  check(views, device);
  views_ = without_ties(std::move(views));
  std::erase_if(views_, [](const TensorView& view) { return !is_floating(view.dtype); });
  require(!views_.empty(), ErrorKind::argument,
          "parameters: no tensor is of a floating-point type; integers are not averaged");
  std::ranges::stable_sort(views_, [](const TensorView& a, const TensorView& b) {
    return std::tie(a.role, a.dtype) < std::tie(b.role, b.dtype);
  });
  for (const Segment& tensor : tensors()) {
    Segment* last = segments_.empty() ? nullptr : &segments_.back();
    const bool same_group =
        last != nullptr && tensor.role == last->role && tensor.dtype == last->dtype;
    if (same_group && static_cast<std::byte*>(last->data) + last->size_bytes() == tensor.data) {
      last->element_count += tensor.element_count;
    } else {
      segments_.push_back(tensor);
    }
    size_bytes_ = tensor.offset_bytes + tensor.size_bytes();
    if (tensor.role == Role::parameter) parameter_count_ += tensor.element_count;
  }
  const std::string text = manifest(*this);
  hash_ = XXH3_64bits(text.data(), text.size());
}

std::vector<Segment> ParameterLayout::tensors() const {
  std::vector<Segment> tensors;
  std::size_t offset = 0;
  for (const TensorView& view : views_) {
    const bool same_group =
        !tensors.empty() && view.role == tensors.back().role && view.dtype == tensors.back().dtype;
    if (!same_group) offset = round_up(offset, cache_line_bytes);
    tensors.push_back({view.data, offset, view.element_count(), view.dtype, view.role});
    offset += view.size_bytes();
  }
  return tensors;
}

std::string ParameterLayout::describe() const {
  std::size_t buffers = 0;
  for (const TensorView& view : views_) {
    if (view.role == Role::buffer) buffers += view.element_count();
  }
  std::string text = fmt::format("{} {} parameters", parameter_count_, name(views_.front().dtype));
  if (buffers > 0) text += fmt::format(" and {} buffer elements", buffers);
  return text;
}

ParameterLayout ParameterLayout::rebound(std::vector<TensorView> views) const {
  const Device device = views.empty() ? device_ : views.front().device;
  ParameterLayout moved(std::move(views), device);
  require(moved.hash_ == hash_, ErrorKind::mismatch,
          "rebind: the tensors handed over ({}) differ from those of before ({}) in name, shape or "
          "type; make a new worker of them",
          moved.describe(), describe());
  return moved;
}

void ParameterLayout::require_in_place(const std::vector<TensorView>& views) const {
  std::unordered_map<std::string_view, const void*> places;
  for (const TensorView& view : views) places.emplace(view.name, view.data);
  for (const TensorView& view : views_) {
    const auto found = places.find(view.name);
    require(found != places.end() && found->second == view.data, ErrorKind::mismatch,
            "parameters: the memory of {} has {}; call rebind() when the framework moves tensors",
            fast::describe(view), found == places.end() ? "gone" : "moved");
  }
}

void ParameterLayout::gather(std::byte* packed) const {
  for (const Segment& s : segments_) std::memcpy(packed + s.offset_bytes, s.data, s.size_bytes());
}

void ParameterLayout::scatter(const std::byte* packed) const {
  for (const Segment& s : segments_) std::memcpy(s.data, packed + s.offset_bytes, s.size_bytes());
}

std::string manifest(const ParameterLayout& layout) {
  std::string text;
  for (const TensorView& view : layout.views()) text += describe(view) + "\n";
  return text;
}

}  // namespace fast
