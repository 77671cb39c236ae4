#include "sites/state_description.hpp"

#include <fast/core/error.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/message.hpp"

namespace fast::sites {
namespace {

using Json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
/// Enough for about 100,000 tensors.
constexpr std::size_t most_description_bytes = std::size_t{16} << 20;
constexpr std::string_view role_names[] = {"parameter", "buffer"};

Json json_of(const TensorView& view, const Segment& place) {
  return {{"name", view.name},
          {"shape", view.shape},
          {"dtype", name(view.dtype)},
          {"role", role_names[static_cast<std::size_t>(view.role)]},
          {"offset", place.offset_bytes}};
}

std::string length_text(std::uint64_t length) {
  std::string text;
  for (std::size_t byte = 0; byte < length_bytes; ++byte)
    text += static_cast<char>(length >> (8 * byte) & 0xff);
  return text;
}

std::uint64_t length_at_end(std::span<const std::byte> state) {
  std::uint64_t length = 0;
  for (std::size_t byte = 0; byte < length_bytes; ++byte)
    length = length << 8 | std::to_integer<std::uint64_t>(state[state.size() - 1 - byte]);
  return length;
}

void require_fit(bool fits, std::string_view why) {
  require(fits, ErrorKind::data,
          "the description of a state: {}; the site's program may be another version", why);
}

/// f32 or f64: what sites exchange.
DType dtype_of_name(const std::string& text) {
  for (const DType dtype : {DType::f32, DType::f64})
    if (text == name(dtype)) return dtype;
  fail(ErrorKind::data, "the description of a state: the type \"{}\"; f32 or f64 is required",
       printable(text));
}

/// Conversions of other numbers may not be defined.
std::int64_t integer_in(const Json& value) {
  require_fit(value.is_number_integer(), "a number is no integer");
  return value.get<std::int64_t>();
}

std::vector<std::int64_t> shape_in(const Json& list) {
  require_fit(list.is_array(), "a shape is no list");
  std::vector<std::int64_t> shape;
  for (const Json& side : list) shape.push_back(integer_in(side));
  return shape;
}

TensorView view_of_json(const Json& json, std::span<std::byte> weights) {
  TensorView view;
  json.at("name").get_to(view.name);
  view.shape = shape_in(json.at("shape"));
  view.dtype = dtype_of_name(json.at("dtype").get<std::string>());
  view.role = json.at("role") == role_names[1] ? Role::buffer : Role::parameter;
  const auto offset = static_cast<std::uint64_t>(integer_in(json.at("offset")));
  const std::size_t most = weights.size() / size_bytes(view.dtype);
  require_fit(view.element_count() <= most && offset <= weights.size() - view.size_bytes(),
              "a tensor ends behind the bytes");
  require_fit(offset % size_bytes(view.dtype) == 0, "a tensor begins within an element");
  view.data = weights.data() + offset;
  return view;
}

void require_apart(const std::vector<TensorView>& views, std::size_t most_bytes) {
  std::set<std::string> names;
  std::size_t bytes = 0;
  for (const TensorView& view : views) {
    require_fit(!view.name.empty() && names.insert(view.name).second, "a name is there twice");
    bytes += view.size_bytes();
    require_fit(bytes <= most_bytes, "its tensors have more bytes than the state");
  }
}

std::vector<TensorView> views_of(const Json& json, std::span<std::byte> weights) {
  std::vector<TensorView> views;
  for (const Json& tensor : json.at("tensors")) views.push_back(view_of_json(tensor, weights));
  require_apart(views, weights.size());
  return views;
}

}  // namespace

std::string describe_weights(const ParameterLayout& weights) {
  Json tensors = Json::array();
  const std::vector<Segment> places = weights.tensors();
  for (std::size_t i = 0; i < places.size(); ++i)
    tensors.push_back(json_of(weights.views()[i], places[i]));
  const Json all = {{"tensors", tensors}};
  const std::string text = all.dump(-1, ' ', true, Json::error_handler_t::replace);
  require(text.size() <= most_description_bytes, ErrorKind::argument,
          "sites: {} tensors, whose names and shapes need {} bytes; at most {} are possible",
          places.size(), text.size(), most_description_bytes);
  return text + length_text(text.size());
}

std::vector<TensorView> weights_in(std::span<std::byte> state) {
  require_fit(state.size() >= length_bytes, "it has no length");
  const std::uint64_t length = length_at_end(state);
  require_fit(length <= std::min(most_description_bytes, state.size() - length_bytes),
              "it is longer than a description can be");
  const std::span<std::byte> weights = state.first(state.size() - length_bytes - length);
  const auto* text = reinterpret_cast<const char*>(state.data() + weights.size());
  try {
    return views_of(Json::parse(text, text + length), weights);
  } catch (const Json::exception& error) {
    fail(ErrorKind::data, "the description of a state cannot be read: {}", printable(error.what()));
  }
}

}  // namespace fast::sites
