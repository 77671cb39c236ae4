#include "data/files/contents.hpp"

#include <zlib.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fstream>
#include <iterator>
#include <memory>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast::data {

std::string read_text(const std::filesystem::path& path, std::string_view who) {
  const std::string problem = why_unreadable_file(path);
  require(problem.empty(), ErrorKind::data, "{}: {}: {}; give a file that this user can read", who,
          printable(path.string()), problem);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  require(!error, ErrorKind::data, "{}: {}: its size cannot be read: {}", who,
          printable(path.string()), error.message());
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  require(file.gcount() == static_cast<std::streamsize>(size), ErrorKind::data,
          "{}: {}: {} of its {} bytes can be read; copy the file again", who,
          printable(path.string()), file.gcount(), size);
  return bytes;
}

std::string read_maybe_compressed(const std::filesystem::path& path, std::string_view who) {
  if (!in_small_letters(path.string()).ends_with(".gz")) return read_text(path, who);
  const std::string problem = why_unreadable_file(path);
  require(problem.empty(), ErrorKind::data, "{}: {}: {}; give a file that this user can read", who,
          printable(path.string()), problem);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  require(file != nullptr, ErrorKind::data, "{}: {}: it cannot be opened", who,
          printable(path.string()));
  constexpr std::size_t chunk = std::size_t{1} << 20;
  std::string bytes;
  for (int got = 1; got > 0;) {
    const std::size_t old = bytes.size();
    bytes.resize(old + chunk);
    got = gzread(file.get(), bytes.data() + old, chunk);
    bytes.resize(old + static_cast<std::size_t>(std::max(got, 0)));
  }
  int code = Z_OK;
  const char* const text = gzerror(file.get(), &code);
  require(code == Z_OK || code == Z_STREAM_END, ErrorKind::data,
          "{}: {}: damaged or truncated ({}); copy the file again", who, printable(path.string()),
          text);
  return bytes;
}

bool is_table(std::string_view path) {
  const std::string name = in_small_letters(path);
  constexpr std::string_view endings[] = {".csv", ".tsv", ".csv.gz", ".tsv.gz"};
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace fast::data
