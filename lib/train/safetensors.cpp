#include <fast/core/error.hpp>
#include <fast/train/safetensors.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace fast::train {
namespace {

std::string_view format_name(DType dtype) {
  static const std::map<DType, std::string_view> names{
      {DType::f32, "F32"}, {DType::f64, "F64"}, {DType::bf16, "BF16"}, {DType::f16, "F16"},
      {DType::i8, "I8"},   {DType::u8, "U8"},   {DType::i32, "I32"},   {DType::i64, "I64"}};
  return names.at(dtype);
}

std::string header_of(const std::vector<TensorView>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
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
  return text;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  std::ofstream file(temporary, std::ios::binary);
  const std::string header = header_of(tensors);
  for (int byte = 0; byte < 8; ++byte) {
    file.put(static_cast<char>(header.size() >> (8 * byte) & 0xff));
  }
  file << header;
  for (const TensorView& tensor : tensors) {
    file.write(static_cast<const char*>(tensor.data),
               static_cast<std::streamsize>(tensor.size_bytes()));
  }
  file.close();
  std::error_code problem;
  if (file) std::filesystem::rename(temporary, path, problem);
  require(file && !problem, ErrorKind::resource,
          "save_safetensors: {} cannot be written; check the directory and its free space",
          path.string());
}

}  // namespace fast::train
