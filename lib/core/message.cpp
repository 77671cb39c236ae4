#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fast/core/host.hpp>
#include <fast/core/message.hpp>
#include <new>
#include <optional>
#include <stdexcept>

namespace fast {
namespace {

namespace fs = std::filesystem;

struct Character {
  char32_t code;
  std::size_t bytes;
};

/// The character that begins at `at`; none where the bytes there are not UTF-8 in its shortest
/// form.
std::optional<Character> character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return Character{first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < bytes) return std::nullopt;
  char32_t code = first & (0x7fU >> bytes);
  for (std::size_t k = 1; k < bytes; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(k) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[bytes] || code > 0x10ffff || surrogate) return std::nullopt;
  return Character{code, bytes};
}

bool turns_direction(char32_t code) {
  return code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_line_break(char32_t code) { return code == 0x2028 || code == 0x2029; }

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

std::string escaped(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  const auto value = static_cast<unsigned>(code);
  return code < 0x100 ? fmt::format("\\x{:02x}", value) : fmt::format("\\u{:04x}", value);
}

std::string why_not(const fs::path& path, int access_mode) {
  return access(path.c_str(), access_mode) == 0 ? "" : std::strerror(errno);
}

}  // namespace

std::string printable(std::string_view text, Newlines newlines) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<Character> found = character_at(text, at);
    const char32_t code = found ? found->code : static_cast<unsigned char>(text[at]);
    const std::size_t bytes = found ? found->bytes : 1;
    const bool kept = code == '\n' && newlines == Newlines::keep;
    if (found && (kept || !(is_control(code) || turns_direction(code) || is_line_break(code)))) {
      shown += text.substr(at, bytes);
    } else {
      shown += escaped(code);
    }
    at += bytes;
  }
  return shown;
}

std::string why_unreadable_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "there is no such file";
  if (error) return error.message();
  if (fs::is_directory(status)) return "it is a directory";
  if (!fs::is_regular_file(status)) return "it is not a regular file";
  return why_not(path, R_OK);
}

std::string why_unreadable_directory(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "there is no such directory";
  if (error) return error.message();
  if (!fs::is_directory(status)) return "it is not a directory";
  return why_not(path, R_OK | X_OK);
}

std::string message_of(const std::exception& error) {
  if (const auto* file = dynamic_cast<const fs::filesystem_error*>(&error)) {
    return fmt::format("{}: {}; check the path, its permissions and the free space of the disk",
                       printable(file->path1().string()), file->code().message());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return fmt::format(
        "memory is used up: an allocation failed, this process holds {}, {} are free; use a "
        "smaller model, batch size or number of workers, or lift the limit (ulimit -v)",
        size_text(static_cast<double>(resident_memory_bytes())),
        size_text(static_cast<double>(available_memory_bytes())));
  }
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return "a size is larger than any memory; use a smaller model, batch size or number of workers";
  }
  return printable(error.what(), Newlines::keep);
}

}  // namespace fast
