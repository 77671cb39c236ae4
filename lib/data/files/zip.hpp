// ZIP archives, as NumPy's .npz files are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

/// The members of an archive in memory. Stored and deflated members, also of ZIP64; neither
/// encrypted ones nor archives in several parts.
class ZipArchive {
 public:
  /// Refers to the bytes. Throws Error(data), which begins with "npz: NAME", when they are no
  /// whole archive.
  ZipArchive(std::string_view bytes, std::string name);

  std::vector<std::string> names() const;
  bool has(std::string_view member) const;
  /// The member's bytes. Throws Error(data) when there is no such member, or it is damaged.
  std::string read(std::string_view member) const;

 private:
  struct Member {
    std::string name;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed_bytes = 0, bytes = 0, at = 0;
  };
  std::uint64_t number(std::uint64_t at, std::size_t bytes) const;
  void demand(bool holds) const;
  std::uint64_t find_directory(std::uint64_t& count) const;
  Member member_at(std::uint64_t& at) const;
  void read_wide_sizes(Member& member, std::uint64_t at, std::uint64_t bytes) const;
  const Member* find(std::string_view member) const;

  std::string_view bytes_;
  std::string name_;
  std::vector<Member> members_;
};

}  // namespace fast::data
