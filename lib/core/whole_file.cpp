#include "core/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>
#include <random>
#include <utility>

#include "core/message.hpp"

namespace fast {
namespace {

constexpr int most_names_tried = 100, most_links = 40;
constexpr std::size_t buffered_bytes = std::size_t{1} << 16;

[[noreturn]] void fail_to_write(const std::filesystem::path& path, int reason) {
  fail(ErrorKind::resource, "{} cannot be written ({}); choose another place, or free space there",
       printable(path.string()), std::strerror(reason));
}

/// A new name each time, even in containers that share a directory and process numbers.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<unsigned> files{0};
  std::random_device device;
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, HOST_NAME_MAX);
  std::filesystem::path name = path;
  name += fmt::format("{}{}-{}-{}-{:08x}", temporary_suffix, host, getpid(), files++, device());
  return name;
}

/// A device or a pipe, say; or /dev/stdout, whatever it leads to.
bool is_special(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.string().starts_with("/dev/")) return std::filesystem::exists(path, ignored);
  const auto status = std::filesystem::status(path, ignored);
  return exists(status) && !is_regular_file(status) && !is_directory(status);
}

/// Where symbolic links lead to, also if nothing is there yet.
std::filesystem::path target_of(std::filesystem::path path) {
  std::error_code problem;
  for (int links = 0; links < most_links && std::filesystem::is_symlink(path, problem); ++links)
    path = path.parent_path() / std::filesystem::read_symlink(path, problem);
  return path;
}

}  // namespace

WholeFile::WholeFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) fail_to_write(path_, EISDIR);
  if (is_special(path_)) {
    descriptor_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!descriptor_.is_open()) fail();
    return;
  }
  for (int k = 0; k < most_names_tried && !descriptor_.is_open(); ++k) {
    temporary_ = temporary_name(target_of(path_));
    descriptor_ =
        Descriptor(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!descriptor_.is_open() && errno != EEXIST) break;
  }
  if (!descriptor_.is_open()) fail();
  struct stat before {};
  if (stat(path_.c_str(), &before) == 0) fchmod(descriptor_.get(), before.st_mode & 0777);
}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void WholeFile::fail() const { fail_to_write(path_, errno); }

void WholeFile::write(Bytes part) {
  if (buffer_.size() + part.size() > buffered_bytes) empty_buffer();
  if (part.size() > buffered_bytes) return write_out(part);
  buffer_.append(reinterpret_cast<const char*>(part.data()), part.size());
}

void WholeFile::write_out(Bytes part) {
  while (!part.empty()) {
    const ssize_t count = ::write(descriptor_.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail();
    part = part.subspan(static_cast<std::size_t>(count));
  }
}

void WholeFile::empty_buffer() {
  write_out(bytes_of(buffer_));
  buffer_.clear();
}

void WholeFile::finish() {
  empty_buffer();
  if (close(descriptor_.release()) != 0) fail();
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), target_of(path_).c_str()) != 0) fail();
  temporary_.clear();
}

void WholeFile::finish_durably() {
  empty_buffer();
  if (fsync(descriptor_.get()) != 0) fail();
  finish();
  sync_directory(path_.parent_path());
}

void write_whole(const std::filesystem::path& path, std::string_view text) {
  WholeFile file(path);
  file.write(text);
  file.finish();
}

void write_durably(const std::filesystem::path& path, const std::vector<Bytes>& parts) {
  WholeFile file(path);
  for (const Bytes& part : parts) file.write(part);
  file.finish_durably();
}

void require_writable(const std::filesystem::path& path) {
  if (!is_special(path)) {
    const WholeFile tried(path);  // it leaves nothing
  } else if (access(path.c_str(), W_OK) != 0) {
    fail_to_write(path, errno);
  }
}

void sync_directory(const std::filesystem::path& directory) {
  const Descriptor opened(
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open()) fsync(opened.get());
}

}  // namespace fast
