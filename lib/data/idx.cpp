#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/data/idx.hpp>
#include <memory>

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

}  // namespace fast::data
