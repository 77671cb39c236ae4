#include "data/files/contents.hpp"

#include <fast/core/error.hpp>
#include <fstream>

#include "core/message.hpp"

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

}  // namespace fast::data
