#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/data/cifar.hpp>
#include <fstream>
#include <limits>
#include <string_view>

namespace fast::data {
namespace {

constexpr std::size_t pixel_bytes = 3 * 32 * 32;

/// A version of the format: its labels come first in a record, the last one is the class.
struct CifarForm {
  std::string_view name;
  std::size_t label_bytes;
  int classes;
  std::string_view files;

  std::size_t record_bytes() const { return label_bytes + pixel_bytes; }
};
constexpr CifarForm cifar10{"cifar-10", 1, 10,
                            "data_batch_1.bin to data_batch_5.bin and test_batch.bin"};
constexpr CifarForm cifar100{"cifar-100", 2, 100, "train.bin and test.bin"};

struct Records {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

/// Records in a file that can be read.
std::uintmax_t records_in(const std::filesystem::path& path, const CifarForm& form) {
  const std::string problem = why_unreadable_file(path);
  require(problem.empty(), ErrorKind::data,
          "read_{}: {}: {}; the binary version of {} has {}, download it again", form.name,
          path.string(), problem, form.name, form.files);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  require(!error && size > 0 && size % form.record_bytes() == 0, ErrorKind::data,
          "read_{}: {}: {} bytes are not a whole number of records of {}; it is truncated, or "
          "not a {} file in the binary version, download it again",
          form.name, path.string(), size, form.record_bytes(), form.name);
  return size / form.record_bytes();
}

/// The file's records, until there are `limit` in all.
void read_records(const std::filesystem::path& path, std::size_t limit, const CifarForm& form,
                  Records& records) {
  const std::uintmax_t count = records_in(path, form);
  std::ifstream file(path, std::ios::binary);
  std::vector<char> record(form.record_bytes());
  for (std::uintmax_t i = 0; i < count && records.labels.size() < limit; ++i) {
    require(file.read(record.data(), static_cast<std::streamsize>(record.size())).good(),
            ErrorKind::data, "read_{}: {}: ended within record {}", form.name, path.string(), i);
    const int label = static_cast<unsigned char>(record[form.label_bytes - 1]);
    require(label < form.classes, ErrorKind::data,
            "read_{}: {}: label {} of record {}, there are {} classes", form.name, path.string(),
            label, i, form.classes);
    records.labels.push_back(label);
    records.pixels.insert(records.pixels.end(),
                          record.begin() + static_cast<std::ptrdiff_t>(form.label_bytes),
                          record.end());
  }
}

Dataset read_cifar(const std::vector<std::filesystem::path>& files, std::size_t limit,
                   const CifarForm& form) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  Records records;
  for (const auto& path : files) read_records(path, limit == 0 ? all : limit, form, records);
  return {std::string(form.name),
          {3, 32, 32},
          std::move(records.pixels),
          std::move(records.labels),
          form.classes};
}

}  // namespace

Dataset read_cifar10(const std::vector<std::filesystem::path>& files, std::size_t limit) {
  return read_cifar(files, limit, cifar10);
}

Dataset read_cifar100(const std::vector<std::filesystem::path>& files, std::size_t limit) {
  return read_cifar(files, limit, cifar100);
}

}  // namespace fast::data
