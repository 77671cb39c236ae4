#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"
#include "data/files/contents.hpp"
#include "data/files/pickle.hpp"

namespace fast::data {
namespace {

constexpr std::uint32_t image_magic = 0x803;
constexpr std::uint32_t label_magic = 0x801;
constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
/// Deflate never expands more: 258 bytes from 2 bits.
constexpr std::uint64_t largest_expansion = 1032;

struct Close {
  void operator()(gzFile file) const { gzclose_r(file); }
};

/// A plain or compressed file that is to hold exactly what its header says.
class IdxFile {
 public:
  explicit IdxFile(const std::filesystem::path& path) : path_(path.string()) {
    const std::string problem = why_unreadable_file(path);
    require(problem.empty(), ErrorKind::data,
            "read_idx: {}: {}; give the path of an IDX file, plain or .gz", path_, problem);
    std::error_code error;
    file_bytes_ = std::filesystem::file_size(path, error);
    file_.reset(gzopen(path_.c_str(), "rb"));
    require(file_ != nullptr, ErrorKind::data,
            "read_idx: {}: cannot be opened: {}; check the path of --data", path_,
            std::strerror(errno));
    gzbuffer(file_.get(), 1U << 17);
  }

  std::uint32_t word() {
    unsigned char b[4];
    require(read(b, 4) == 4, ErrorKind::data,
            "read_idx: {}: the file ends within its header; download it again", path_);
    return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  }

  void expect_magic(std::uint32_t wanted, const char* what) {
    const std::uint32_t found = word();
    require(found == wanted, ErrorKind::data,
            "read_idx: {}: magic number {:#010x}, IDX {} of unsigned bytes begin with {:#010x}; "
            "are the files in the right places?",
            path_, found, what, wanted);
  }

  /// The first `wanted` bytes of the rest of the file, which must be `count` bytes.
  std::vector<std::uint8_t> body(std::uint64_t count, std::uint64_t wanted) {
    const bool plain = gzdirect(file_.get()) == 1;
    require(count / (plain ? 1 : largest_expansion) <= file_bytes_, ErrorKind::data,
            "read_idx: {}: the header announces {} bytes, more than a file of {} bytes can hold; "
            "it is truncated or damaged, download it again",
            path_, count, file_bytes_);
    std::vector<std::uint8_t> bytes;
    while (bytes.size() < wanted) {
      const std::size_t old = bytes.size();
      bytes.resize(std::min<std::uint64_t>(wanted, old + chunk_bytes));
      const std::size_t got = read(bytes.data() + old, bytes.size() - old);
      require(got == bytes.size() - old, ErrorKind::data,
              "read_idx: {}: truncated: the header announces {} bytes, the file holds {}; download "
              "it again",
              path_, count, old + got);
    }
    if (wanted < count) return bytes;
    unsigned char extra = 0;  // reading past the end also has zlib verify its checksum
    require(read(&extra, 1) == 0, ErrorKind::data,
            "read_idx: {}: more bytes follow after the {} that the header announces; the file is "
            "damaged",
            path_, count);
    return bytes;
  }

 private:
  std::size_t read(unsigned char* to, std::size_t count) {
    const int got = gzread(file_.get(), to, static_cast<unsigned>(count));
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) text = std::strerror(errno);
    require(got >= 0 && (code == Z_OK || code == Z_STREAM_END), ErrorKind::data,
            "read_idx: {}: damaged or truncated ({}); download it again", path_, text);
    return static_cast<std::size_t>(got);
  }

  std::string path_;
  std::uint64_t file_bytes_ = 0;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace

Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                 int classes, std::size_t limit) {
  IdxFile image_file(images);
  image_file.expect_magic(image_magic, "images");
  const std::uint64_t count = image_file.word(), rows = image_file.word(),
                      columns = image_file.word();
  std::uint64_t image_bytes = 0;
  require(count > 0 && rows > 0 && columns > 0 &&
              !__builtin_mul_overflow(count, rows * columns, &image_bytes),
          ErrorKind::data,
          "read_idx: {}: the header announces {} images of {}x{}; the file is damaged, download it "
          "again",
          images.string(), count, rows, columns);

  IdxFile label_file(labels);
  label_file.expect_magic(label_magic, "labels");
  const std::uint64_t label_count = label_file.word();
  require(label_count == count, ErrorKind::data,
          "read_idx: {} images in {}, {} labels in {}; the two must be of one data set", count,
          images.string(), label_count, labels.string());
  const std::uint64_t taken = limit == 0 ? count : std::min<std::uint64_t>(limit, count);
  const std::vector<std::uint8_t> label_bytes = label_file.body(label_count, taken);
  return {labels.string(),
          {1, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)},
          image_file.body(image_bytes, taken * rows * columns),
          {label_bytes.begin(), label_bytes.end()},
          classes};
}

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

const Pickle::Value& entry(const Pickle& pickle, const std::filesystem::path& path,
                           std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const Pickle::Value* found = pickle.find(key)) return *found;
  fail(ErrorKind::data, "read_cifar: {}: it has no \"{}\"; it is no file of CIFAR's Python version",
       path.string(), *keys.begin());
}

/// The bytes of a NumPy array, by the state that it was saved with (version, shape, type, order,
/// bytes), or by its arguments in protocol 5 (bytes, type, shape, order).
std::string_view array_bytes(const Pickle::Value& array) {
  if (array.kind != Pickle::Kind::object || array.items.size() != 1) return {};
  const std::vector<const Pickle::Value*>& of = array.items[0]->items;
  // In the order of C: False, or "C".
  if (of.size() == 5 && of[3]->number == 0) return of[4]->text;
  return of.size() == 4 && of[3]->text == "C" ? of[0]->text : std::string_view();
}

void read_python_records(const std::filesystem::path& path, std::size_t limit, int classes,
                         Records& records) {
  const std::string bytes = read_text(path, "read_cifar");
  const Pickle pickle(bytes, path.string());
  const std::string_view pixels = array_bytes(entry(pickle, path, {"data"}));
  const auto& labels = entry(pickle, path, {"labels", "fine_labels"}).items;
  require(!labels.empty() && pixels.size() == labels.size() * pixel_bytes, ErrorKind::data,
          "read_cifar: {}: {} bytes of pixels for {} labels; an image has {}", path.string(),
          pixels.size(), labels.size(), pixel_bytes);
  for (std::size_t i = 0; i < labels.size() && records.labels.size() < limit; ++i) {
    const std::int64_t label = labels[i]->kind == Pickle::Kind::number ? labels[i]->number : -1;
    require(label >= 0 && label < classes, ErrorKind::data,
            "read_cifar: {}: label {} of image {}, there are {} classes", path.string(), label, i,
            classes);
    records.labels.push_back(static_cast<std::int32_t>(label));
    const std::string_view image = pixels.substr(i * pixel_bytes, pixel_bytes);
    records.pixels.insert(records.pixels.end(), image.begin(), image.end());
  }
}

/// A line each.
std::vector<std::string> names_in_lines(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string_view part : split_text(text, '\n')) {
    const std::string_view name = part.ends_with('\r') ? part.substr(0, part.size() - 1) : part;
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> names_in_pickle(const std::string& bytes, const std::string& file) {
  const Pickle pickle(bytes, file);
  std::vector<std::string> names;
  for (const std::string_view key : {"label_names", "fine_label_names"}) {
    const Pickle::Value* found = pickle.find(key);
    if (found == nullptr) continue;
    for (const Pickle::Value* name : found->items) names.emplace_back(name->text);
  }
  return names;
}

}  // namespace

std::vector<std::string> idx_class_names(const std::filesystem::path& directory, int classes) {
  const std::filesystem::path file = directory / "classes.txt";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  std::vector<std::string> names = names_in_lines(read_text(file, "read_idx"));
  const std::set<std::string_view> different(names.begin(), names.end());
  const bool fits = std::cmp_equal(names.size(), classes) && different.size() == names.size();
  require(classes == 0 || fits, ErrorKind::data,
          "read_idx: {} has {} names, {} of them different, for {} classes; write one name a line "
          "in the order of the labels, or give their number (--classes N)",
          file.string(), names.size(), different.size(), classes);
  return names;
}

Dataset read_cifar_python(const std::vector<std::filesystem::path>& files, int classes,
                          std::size_t limit) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  Records records;
  for (const auto& path : files)
    read_python_records(path, limit == 0 ? all : limit, classes, records);
  return {fmt::format("cifar-{}", classes),
          {3, 32, 32},
          std::move(records.pixels),
          std::move(records.labels),
          classes};
}

std::vector<std::string> cifar_class_names(const std::filesystem::path& directory, int classes) {
  for (const char* name : {"batches.meta.txt", "fine_label_names.txt", "batches.meta", "meta"}) {
    const std::filesystem::path file = directory / name;
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    const std::string text = read_text(file, "read_cifar");
    std::vector<std::string> names;
    try {
      names =
          file.extension() == ".txt" ? names_in_lines(text) : names_in_pickle(text, file.string());
    } catch (const Error&) {
      continue;  // a file of this name of something else
    }
    if (std::cmp_equal(names.size(), classes)) return names;
  }
  return {};
}

Dataset read_cifar10(const std::vector<std::filesystem::path>& files, std::size_t limit) {
  return read_cifar(files, limit, cifar10);
}

Dataset read_cifar100(const std::vector<std::filesystem::path>& files, std::size_t limit) {
  return read_cifar(files, limit, cifar100);
}

}  // namespace fast::data
