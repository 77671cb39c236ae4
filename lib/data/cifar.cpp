#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/data/cifar.hpp>
#include <fstream>
#include <limits>

namespace fast::data {
namespace {

constexpr std::size_t pixel_bytes = 3 * 32 * 32;
constexpr std::size_t record_bytes = 1 + pixel_bytes;
constexpr int classes = 10;

struct Records {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

/// Records in a file that can be read.
std::uintmax_t records_in(const std::filesystem::path& path) {
  const std::string problem = why_unreadable_file(path);
  require(problem.empty(), ErrorKind::data,
          "read_cifar10: {}: {}; CIFAR-10's binary version has data_batch_1.bin to "
          "data_batch_5.bin and test_batch.bin, get it anew",
          path.string(), problem);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  require(!error && size > 0 && size % record_bytes == 0, ErrorKind::data,
          "read_cifar10: {}: {} bytes are no whole number of records of {}; it is truncated or no "
          "CIFAR-10 file in the binary version, get it anew",
          path.string(), size, record_bytes);
  return size / record_bytes;
}

/// The file's records, until there are `limit` in all.
void read_file(const std::filesystem::path& path, std::size_t limit, Records& records) {
  const std::uintmax_t count = records_in(path);
  std::ifstream file(path, std::ios::binary);
  std::array<char, record_bytes> record;
  for (std::uintmax_t i = 0; i < count && records.labels.size() < limit; ++i) {
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

Dataset read_cifar10(const std::vector<std::filesystem::path>& files, std::size_t limit) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  Records records;
  for (const auto& path : files) read_file(path, limit == 0 ? all : limit, records);
  return {"cifar-10", {3, 32, 32}, std::move(records.pixels), std::move(records.labels), classes};
}

}  // namespace fast::data
