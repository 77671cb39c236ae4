#include "data/shards/tar_index.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fast/core/error.hpp>
#include <optional>

#include "core/message.hpp"

namespace fast::data {
namespace {

constexpr std::size_t tar_block = 512;

/// One block of an archive, the header of a member.
class TarHeader {
 public:
  TarHeader(std::string_view block, const std::string& path, std::size_t at)
      : block_(block), path_(path), at_(at) {}

  bool is_end() const { return block_.find_first_not_of('\0') == std::string_view::npos; }
  char type() const { return block_[156]; }
  std::string name() const {
    const std::string_view name = text(0, 100), prefix = text(345, 155);
    const bool has_prefix = block_.substr(257, 6) == std::string_view("ustar\0", 6);
    if (!has_prefix || prefix.empty()) return std::string(name);
    return std::string(prefix) + '/' + std::string(name);
  }
  std::uint64_t size() const { return number(124, 12); }
  /// Throws unless the block's sum is what it says.
  void check() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < tar_block; ++i)
      sum += i >= 148 && i < 156 ? std::uint64_t{' '} : static_cast<unsigned char>(block_[i]);
    require(sum == number(148, 8), ErrorKind::data,
            "tar: {}: the header at byte {} is damaged, or the file is not a tar archive; copy the "
            "file again",
            printable(path_), at_);
  }

 private:
  std::string_view text(std::size_t begin, std::size_t length) const {
    const std::string_view field = block_.substr(begin, length);
    return field.substr(0, field.find('\0'));
  }
  /// Octal digits, or binary when the first bit is set (GNU).
  std::uint64_t number(std::size_t begin, std::size_t length) const {
    std::string_view field = block_.substr(begin, length);
    std::uint64_t value = 0;
    if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
      for (const char c : field.substr(length - 8))
        value = value << 8U | static_cast<unsigned char>(c);
      return value;
    }
    field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
    std::from_chars(field.data(), field.data() + field.size(), value, 8);
    return value;
  }

  std::string_view block_;
  const std::string& path_;
  std::size_t at_;
};

/// What the records before a member say about it.
struct TarNotes {
  std::optional<std::string> name;
  std::optional<std::uint64_t> size;

  /// "25 path=some/name\n", one after the other.
  void read_pax(std::string_view records) {
    while (!records.empty()) {
      std::size_t length = 0;
      const auto [end, error] =
          std::from_chars(records.data(), records.data() + records.size(), length);
      const auto digits = static_cast<std::size_t>(end - records.data());
      if (error != std::errc() || length > records.size() || length < digits + 2) return;
      const std::string_view record = records.substr(digits + 1, length - digits - 2);
      if (record.starts_with("path=")) name = record.substr(5);
      if (record.starts_with("size=")) {
        std::uint64_t value = 0;
        std::from_chars(record.data() + 5, record.data() + record.size(), value);
        size = value;
      }
      records.remove_prefix(length);
    }
  }
};

void refuse_compressed(std::string_view archive, const std::string& path) {
  const bool packed = archive.starts_with("\x1f\x8b") || archive.starts_with("BZh") ||
                      archive.starts_with(
                          "\xfd"
                          "7zXZ") ||
                      archive.starts_with("\x28\xb5\x2f\xfd");
  require(!packed, ErrorKind::data,
          "tar: {}: it is compressed; unpack it (images are compressed already)", printable(path));
}

}  // namespace

void for_each_member(std::string_view archive, const std::string& path,
                     const std::function<void(TarMember)>& take) {
  refuse_compressed(archive, path);
  TarNotes notes;
  std::string last;
  for (std::size_t at = 0;;) {
    require(archive.size() - at >= tar_block, ErrorKind::data,
            "tar: {}: truncated{}: it has {} bytes and no end mark; copy the file again",
            printable(path), last.empty() ? "" : fmt::format(" after \"{}\"", printable(last)),
            archive.size());
    const TarHeader header(archive.substr(at, tar_block), path, at);
    if (header.is_end()) return;
    header.check();
    at += tar_block;
    const std::uint64_t size = notes.size.value_or(header.size());
    const std::string name = notes.name.value_or(header.name());
    require(size <= archive.size() - at, ErrorKind::data,
            "tar: {}: truncated within \"{}\": {} of its {} bytes are there; copy the file again",
            printable(path), printable(name), archive.size() - at, size);
    const std::string_view contents = archive.substr(at, size);
    switch (header.type()) {
      case 'x':
        notes.read_pax(contents);
        break;
      case 'L':
        notes.name = contents.substr(0, contents.find('\0'));
        break;
      case 'g':
      case 'K':
        break;
      case 'S':
        fail(ErrorKind::data, "tar: {}: \"{}\" is a sparse file; write the archive without holes",
             printable(path), printable(name));
      default:
        if (header.type() == '0' || header.type() == '\0' || header.type() == '7')
          take({name, at, contents.size()});
        last = name;
        notes = {};
    }
    const std::uint64_t padded = (size + tar_block - 1) / tar_block * tar_block;
    at += std::min<std::uint64_t>(padded, archive.size() - at);
  }
}

}  // namespace fast::data
