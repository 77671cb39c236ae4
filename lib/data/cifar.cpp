#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <fast/data/cifar.hpp>
#include <fstream>

namespace fast::data {
namespace {

constexpr std::size_t pixel_bytes = 3 * 32 * 32;
constexpr std::size_t record_bytes = 1 + pixel_bytes;
constexpr int classes = 10;

struct Records {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

void read_file(const std::filesystem::path& path, Records& records) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  require(!error, ErrorKind::data, "read_cifar10: {}: cannot be read: {}", path.string(),
          error.message());
  require(size > 0 && size % record_bytes == 0, ErrorKind::data,
          "read_cifar10: {}: {} bytes are no whole number of records of {}; it is truncated or no "
          "CIFAR-10 file in the binary version, get it anew",
          path.string(), size, record_bytes);
  std::ifstream file(path, std::ios::binary);
  std::array<char, record_bytes> record;
  for (std::uintmax_t i = 0; i < size / record_bytes; ++i) {
    require(file.read(record.data(), record.size()).good(), ErrorKind::data,
            "read_cifar10: {}: ended within record {}", path.string(), i);
    const int label = static_cast<unsigned char>(record[0]);
    require(label < classes, ErrorKind::data,
            "read_cifar10: {}: label {} of record {}, there are {} classes", path.string(), label,
            i, classes);
    records.labels.push_back(label);
    records.pixels.insert(records.pixels.end(), record.begin() + 1, record.end());
  }
}

}  // namespace

Dataset read_cifar10(const std::vector<std::filesystem::path>& files) {
  Records records;
  for (const auto& path : files) read_file(path, records);
  return {"cifar-10", {3, 32, 32}, std::move(records.pixels), std::move(records.labels), classes};
}

}  // namespace fast::data
