#include <fast/core/error.hpp>
#include <fast/train/safetensors.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "train/checkpoint/checkpoint.hpp"

namespace fast::train {
namespace {

constexpr std::size_t length_bytes = 8;

constexpr std::pair<DType, std::string_view> format_names[] = {
    {DType::f32, "F32"}, {DType::f64, "F64"}, {DType::bf16, "BF16"}, {DType::f16, "F16"},
    {DType::i8, "I8"},   {DType::u8, "U8"},   {DType::i32, "I32"},   {DType::i64, "I64"}};

std::string_view format_name(DType dtype) {
  return std::ranges::find_if(format_names, [&](const auto& entry) { return entry.first == dtype; })
      ->second;
}

std::string to_little_endian(std::uint64_t value) {
  std::string bytes;
  for (std::size_t byte = 0; byte < length_bytes; ++byte) {
    bytes += static_cast<char>(value >> (8 * byte) & 0xff);
  }
  return bytes;
}

std::size_t from_little_endian(const std::byte* bytes) {
  std::uint64_t value = 0;
  for (std::size_t byte = length_bytes; byte-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[byte]);
  }
  return value;
}

}  // namespace

std::string safetensors_header(const std::vector<TensorView>& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const std::size_t end = offset + tensor.size_bytes();
    header[tensor.name] = {{"dtype", format_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of eight
  return to_little_endian(text.size()) + text;
}

void save_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                      const Metadata& metadata) {
  const std::string header = safetensors_header(tensors, metadata);
  std::vector<Bytes> parts{bytes_of(header)};
  for (const TensorView& tensor : tensors) {
    parts.emplace_back(static_cast<const std::byte*>(tensor.data), tensor.size_bytes());
  }
  write_durably(path, parts);
}

namespace {

using SortedJson = nlohmann::json;

/// Reads one header. Every error names the file.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view file) : file_(file) {}

  SortedJson parse(std::string_view text) const {
    try {
      return SortedJson::parse(
          text, [this](int depth, SortedJson::parse_event_t event, SortedJson& parsed) {
            return check_event(depth, event, parsed);
          });
    } catch (const SortedJson::exception& error) {
      refuse("its header is not JSON ({})", error.what());
    }
  }

  Metadata metadata(const SortedJson& json) const {
    demand(json.is_object(), "its __metadata__ is not an object");
    Metadata metadata;
    for (const auto& [name, value] : json.items()) {
      demand(value.is_string(), "its metadata \"{}\" is not text", shown(name));
      metadata[name] = value.get<std::string>();
    }
    return metadata;
  }

  StoredTensor tensor(const std::string& name, const SortedJson& json) const {
    const std::string shown = HeaderReader::shown(name);
    demand(json.is_object() && json.size() == 3 && json.contains("dtype") &&
               json.contains("shape") && json.contains("data_offsets"),
           "tensor \"{}\" has not just dtype, shape and data_offsets", shown);
    const SortedJson& offsets = json["data_offsets"];
    demand(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
               offsets[1].is_number_unsigned(),
           "tensor \"{}\": data_offsets are not two numbers", shown);
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    demand(begin <= end, "tensor \"{}\" ends at {}, before it begins at {}", shown, end, begin);
    StoredTensor tensor{name, dtype(shown, json["dtype"]), shape(shown, json["shape"]), begin,
                        end - begin};
    check_size(shown, tensor);
    return tensor;
  }

  template <class... Args>
  void demand(bool holds, fmt::format_string<Args...> what, Args&&... args) const {
    if (!holds) refuse(what, std::forward<Args>(args)...);
  }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> what, Args&&... args) const {
    fail(ErrorKind::data, "{} is not a safetensors file: {}; write it again", file_,
         fmt::format(what, std::forward<Args>(args)...));
  }

  /// A name for messages, shortened: names may be as long as the header.
  static std::string shown(std::string_view name) {
    constexpr std::size_t longest = 60;
    return printable(name.substr(0, longest)) + (name.size() > longest ? "..." : "");
  }

 private:
  /// Refuses more depth than the format has, and repeated names.
  bool check_event(int depth, SortedJson::parse_event_t event, SortedJson& parsed) const {
    demand(depth <= 3, "its header is nested more deeply than the format is");
    if (event == SortedJson::parse_event_t::key && depth == 1) {
      const auto name = parsed.get<std::string>();
      demand(names_.insert(name).second, "tensor \"{}\" is there twice", shown(name));
    }
    return true;
  }

  DType dtype(const std::string& shown, const SortedJson& json) const {
    const std::string text = json.is_string() ? json.get<std::string>() : "";
    for (const auto& [dtype, name] : format_names) {
      if (text == name) return dtype;
    }
    demand(json.is_string(), "tensor \"{}\": its type is not text", shown);
    fail(ErrorKind::data,
         "{}: tensor \"{}\" is of type \"{}\"; F32, F64, BF16, F16, I8, U8, I32 and I64 are read. "
         "Convert the tensor or leave it out",
         file_, shown, HeaderReader::shown(text));
  }

  std::vector<std::int64_t> shape(const std::string& shown, const SortedJson& json) const {
    demand(json.is_array() && json.size() <= 64, "tensor \"{}\": its shape is not a list", shown);
    std::vector<std::int64_t> shape;
    for (const SortedJson& side : json) {
      demand(side.is_number_unsigned() && side.get<std::uint64_t>() <= INT64_MAX,
             "tensor \"{}\": a side of its shape is not a whole number from 0 on", shown);
      shape.push_back(side.get<std::int64_t>());
    }
    return shape;
  }

  void check_size(const std::string& shown, const StoredTensor& tensor) const {
    std::uint64_t needed = size_bytes(tensor.dtype);
    bool fits = true;
    for (const std::int64_t side : tensor.shape) {
      fits = fits && !__builtin_mul_overflow(needed, static_cast<std::uint64_t>(side), &needed);
    }
    demand(fits && needed == tensor.size_bytes,
           "tensor \"{}\" has {} bytes, not what its shape and type need", shown,
           tensor.size_bytes);
  }

  std::string_view file_;
  mutable std::set<std::string> names_;
};

void check_coverage(const HeaderReader& reader, const SafetensorsHeader& header,
                    std::uint64_t file_bytes) {
  std::uint64_t end = 0;
  for (const StoredTensor& tensor : header.tensors) {
    reader.demand(tensor.offset_bytes == end,
                  "tensor \"{}\" begins at {}, the one before ends at {}",
                  HeaderReader::shown(tensor.name), tensor.offset_bytes, end);
    end += tensor.size_bytes;
  }
  reader.demand(end == file_bytes - header.data_offset_bytes,
                "its tensors have {} bytes, {} follow the header", end,
                file_bytes - header.data_offset_bytes);
}

/// A version of less than 128 as field 1, and a name or the graph as the next one.
bool begins_as_onnx(std::span<const std::byte> beginning) {
  const auto byte = [&](std::size_t at) { return std::to_integer<int>(beginning[at]); };
  constexpr int version = 0x08, name = 0x12, graph = 0x3a;
  return byte(0) == version && byte(1) < 0x80 && (byte(2) == name || byte(2) == graph);
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> beginning, std::uint64_t file_bytes,
                                    std::string_view file) {
  const HeaderReader reader(file);
  reader.demand(beginning.size() >= length_bytes && beginning.size() <= file_bytes,
                "it has {} bytes, not even a header's length", beginning.size());
  const std::uint64_t length = from_little_endian(beginning.data());
  require(length <= most_header_bytes || !begins_as_onnx(beginning), ErrorKind::data,
          "{} is not a safetensors file: it looks like ONNX; give the file that it was made from",
          file);
  reader.demand(length <= most_header_bytes, "it does not begin with the length of a header");
  reader.demand(length <= file_bytes - length_bytes && length <= beginning.size() - length_bytes,
                "its header is to have {} bytes, the file has {}", length, file_bytes);
  const SortedJson json =
      reader.parse({reinterpret_cast<const char*>(beginning.data()) + length_bytes, length});
  reader.demand(json.is_object(), "its header is not an object");
  SafetensorsHeader header;
  header.data_offset_bytes = length_bytes + length;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      header.metadata = reader.metadata(value);
    } else {
      header.tensors.push_back(reader.tensor(name, value));
    }
  }
  std::ranges::stable_sort(header.tensors, [](const auto& a, const auto& b) {
    return std::pair(a.offset_bytes, a.size_bytes) < std::pair(b.offset_bytes, b.size_bytes);
  });
  check_coverage(reader, header, file_bytes);
  return header;
}

namespace {

/// The first `count` bytes; fewer when the file ends before.
AlignedBuffer read_bytes(std::ifstream& in, std::size_t count, const std::string& file) {
  AlignedBuffer bytes(count);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(count));
  require(in.good(), ErrorKind::data, "{} cannot be read to its end; copy the file again", file);
  return bytes;
}

std::size_t beginning_bytes(std::ifstream& in, std::size_t file_bytes, const std::string& file) {
  if (file_bytes < length_bytes) return file_bytes;
  const std::size_t header = from_little_endian(read_bytes(in, length_bytes, file).data());
  return length_bytes + std::min({header, most_header_bytes, file_bytes - length_bytes});
}

}  // namespace

/// Allocates memory for the whole file only after the header has been checked.
Safetensors::Safetensors(const std::filesystem::path& path) : file_(path.string()) {
  const std::string problem = why_unreadable_file(path);
  require(problem.empty(), ErrorKind::data,
          "{} cannot be read: {}; give the path of a safetensors file", file_, problem);
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  require(in.good(), ErrorKind::resource, "{} cannot be opened: {}; close other files", file_,
          std::strerror(errno));
  size_ = static_cast<std::size_t>(in.tellg());
  const std::size_t beginning = beginning_bytes(in, size_, file_);
  bytes_ = read_bytes(in, beginning, file_);
  header_ = parse_safetensors({bytes_.data(), beginning}, size_, file_);
  bytes_ = read_bytes(in, size_, file_);
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(header_.tensors, name, &StoredTensor::name);
  return found == header_.tensors.end() ? nullptr : &*found;
}

std::span<const std::byte> Safetensors::data(const StoredTensor& tensor) const {
  return bytes().subspan(header_.data_offset_bytes + tensor.offset_bytes, tensor.size_bytes);
}

std::vector<TensorView> Safetensors::views(std::string_view prefix) const {
  std::vector<TensorView> views;
  for (const StoredTensor& tensor : tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    void* data = const_cast<std::byte*>(this->data(tensor).data());
    views.push_back(
        {tensor.name.substr(prefix.size()), data, tensor.shape, tensor.dtype, Role::parameter, {}});
  }
  return views;
}

void Safetensors::read(const std::vector<TensorView>& views) const {
  copy_tensors(this->views(), views, file_);
}

namespace {

/// Of the run whose file lacks a tensor of that name, or has another one.
std::string_view what_differs(std::string_view name) {
  if (name.starts_with(optimizer_prefix)) return "its run had another optimizer: choose that one";
  if (name.starts_with(ema_prefix)) return "its run had no average of weights: leave --ema out";
  return "it is of another model";
}

}  // namespace

void copy_tensors(const std::vector<TensorView>& from, const std::vector<TensorView>& to,
                  std::string_view file) {
  std::vector<const TensorView*> sources;
  for (const TensorView& view : to) {
    const auto found = std::ranges::find(from, view.name, &TensorView::name);
    const std::string_view whose = what_differs(view.name);
    require(found != from.end(), ErrorKind::data, "{} has no tensor {}; {}", file, describe(view),
            whose);
    require(found->dtype == view.dtype && found->shape == view.shape, ErrorKind::data,
            "{} has {} where {} is needed; {}", file, describe(*found), describe(view), whose);
    sources.push_back(&*found);
  }
  for (std::size_t k = 0; k < to.size(); ++k) {
    const std::size_t bytes = to[k].size_bytes();
    if (bytes > 0) std::memcpy(to[k].data, sources[k]->data, bytes);
  }
}

}  // namespace fast::train
