// Data files of any content are read or refused with fast::Error; nothing else happens. The first
// byte chooses the reader.
#include <cstddef>
#include <cstdint>
#include <fast/core/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/csv_table.hpp"
#include "data/files/npy.hpp"
#include "data/files/pickle.hpp"
#include "data/files/zip.hpp"
#include "data/shards/packed_shard.hpp"
#include "data/shards/tar_index.hpp"

namespace {

void read(char reader, std::string_view bytes) {
  using namespace fast::data;
  switch (reader) {
    case 'c':
      CsvTable(bytes, "fuzz.csv", {"y", {}});
      break;
    case 'n':
      parse_npy(bytes, "fuzz.npy");
      break;
    case 'p':
      Pickle(bytes, "fuzz.pickle").find("data");
      break;
    case 'z': {
      const ZipArchive archive(bytes, "fuzz.npz");
      for (const std::string& name : archive.names()) archive.read(name);
      break;
    }
    case 't': {
      std::size_t sum = 0;
      for_each_member(bytes, "fuzz.tar", [&](const TarMember& member) {
        for (const char c : bytes.substr(member.at, member.bytes))
          sum += static_cast<unsigned char>(c);
      });
      volatile std::size_t keep = sum;
      static_cast<void>(keep);
      break;
    }
    default:
      parse_packed(std::as_bytes(std::span(bytes)), "fuzz.packed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    read(bytes[0], std::string_view(bytes).substr(1));
  } catch (const fast::Error&) {
  }
  return 0;
}
