#include "data/files/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <limits>
#include <utility>

#include "core/message.hpp"

namespace fast::data {
namespace {

// APPNOTE.TXT, sections 4.3.7 to 4.3.16
// (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).
constexpr std::uint64_t local_signature = 0x04034b50, directory_signature = 0x02014b50,
                        end_signature = 0x06054b50, wide_end_signature = 0x06064b50,
                        wide_locator_signature = 0x07064b50;
constexpr std::uint64_t end_bytes = 22, locator_bytes = 20, entry_bytes = 46, local_bytes = 30;
constexpr std::uint64_t longest_comment = 65535;
constexpr std::uint64_t wide = 0xffffffff;
/// Deflate never expands more.
constexpr std::uint64_t most_expansion = 1032;

}  // namespace

void ZipArchive::demand(bool holds) const {
  require(holds, ErrorKind::data, "npz: {}: it is not a complete ZIP archive; copy the file again",
          printable(name_));
}

/// Little-endian.
std::uint64_t ZipArchive::number(std::uint64_t at, std::size_t bytes) const {
  demand(at <= bytes_.size() && bytes <= bytes_.size() - at);
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;)
    value = value << 8U | static_cast<unsigned char>(bytes_[at + i]);
  return value;
}

/// Its place, and how many members it lists.
std::uint64_t ZipArchive::find_directory(std::uint64_t& count) const {
  demand(bytes_.size() >= end_bytes);
  std::uint64_t end = bytes_.size() - end_bytes;
  const std::uint64_t least = end > longest_comment ? end - longest_comment : 0;
  while (number(end, 4) != end_signature) {
    demand(end > least);
    --end;
  }
  count = number(end + 10, 2);
  const std::uint64_t at = number(end + 16, 4);
  if (count != 0xffff && at != wide) return at;
  demand(end >= locator_bytes && number(end - locator_bytes, 4) == wide_locator_signature);
  const std::uint64_t wide_end = number(end - locator_bytes + 8, 8);
  demand(number(wide_end, 4) == wide_end_signature);
  count = number(wide_end + 32, 8);
  return number(wide_end + 48, 8);
}

/// ZIP64: what does not fit 32 bits is in an extra field, in this order.
void ZipArchive::read_wide_sizes(Member& member, std::uint64_t at, std::uint64_t bytes) const {
  const std::uint64_t end = at + bytes;
  while (at + 4 <= end) {
    const std::uint64_t kind = number(at, 2), size = number(at + 2, 2);
    at += 4;
    if (kind == 1) {
      for (std::uint64_t* value : {&member.bytes, &member.packed_bytes, &member.at}) {
        if (*value != wide) continue;
        *value = number(at, 8);
        at += 8;
      }
      return;
    }
    at += size;
  }
}

ZipArchive::Member ZipArchive::member_at(std::uint64_t& at) const {
  demand(number(at, 4) == directory_signature);
  const std::uint64_t name_bytes = number(at + 28, 2), extra = number(at + 30, 2),
                      comment = number(at + 32, 2);
  Member member;
  member.method = static_cast<std::uint16_t>(number(at + 10, 2));
  member.crc = static_cast<std::uint32_t>(number(at + 16, 4));
  member.packed_bytes = number(at + 20, 4);
  member.bytes = number(at + 24, 4);
  member.at = number(at + 42, 4);
  demand(name_bytes <= bytes_.size() - std::min<std::uint64_t>(bytes_.size(), at + entry_bytes));
  member.name = bytes_.substr(at + entry_bytes, name_bytes);
  read_wide_sizes(member, at + entry_bytes + name_bytes, extra);
  at += entry_bytes + name_bytes + extra + comment;
  return member;
}

ZipArchive::ZipArchive(std::string_view bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  std::uint64_t count = 0;
  std::uint64_t at = find_directory(count);
  for (std::uint64_t i = 0; i < count; ++i) members_.push_back(member_at(at));
}

std::vector<std::string> ZipArchive::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

const ZipArchive::Member* ZipArchive::find(std::string_view member) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& each) { return each.name == member; });
  return found == members_.end() ? nullptr : &*found;
}

bool ZipArchive::has(std::string_view member) const { return find(member) != nullptr; }

std::string ZipArchive::read(std::string_view name) const {
  const Member* found = find(name);
  require(found != nullptr, ErrorKind::data, "npz: {}: it has no member {}", printable(name_),
          printable(name));
  const Member& member = *found;
  demand(number(member.at, 4) == local_signature);
  const std::uint64_t begin =
      member.at + local_bytes + number(member.at + 26, 2) + number(member.at + 28, 2);
  demand(begin <= bytes_.size() && member.packed_bytes <= bytes_.size() - begin);
  require(member.method == 0 || member.method == 8, ErrorKind::data,
          "npz: {}: {} is packed by method {}; numpy.savez and numpy.savez_compressed take others",
          printable(name_), printable(name), member.method);
  const std::string_view packed = bytes_.substr(begin, member.packed_bytes);
  const auto damaged = [&] {
    fail(ErrorKind::data, "npz: {}: {} is damaged; copy the file again", printable(name_),
         printable(name));
  };
  if (member.bytes / most_expansion > packed.size()) damaged();
  std::string result;
  if (member.method == 0) {
    result = packed;
  } else {
    result.resize(member.bytes);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) damaged();
    constexpr std::uint64_t most = std::numeric_limits<uInt>::max();
    std::uint64_t in = 0, out = 0;
    int status = Z_OK;
    while (status == Z_OK) {
      const auto room = static_cast<uInt>(std::min<std::uint64_t>(most, result.size() - out));
      const auto given = static_cast<uInt>(std::min<std::uint64_t>(most, packed.size() - in));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
      stream.avail_in = given;
      stream.next_out = reinterpret_cast<Bytef*>(result.data() + out);
      stream.avail_out = room;
      status = inflate(&stream, Z_NO_FLUSH);
      in += given - stream.avail_in;
      out += room - stream.avail_out;
      if (given - stream.avail_in == 0 && room - stream.avail_out == 0) break;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || out != member.bytes) damaged();
  }
  if (result.size() != member.bytes) damaged();
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(result.data()), result.size());
  if (sum != member.crc) damaged();
  return result;
}

}  // namespace fast::data
