#include "observe/tensorboard_record.hpp"

#include "support/catch.hpp"

using namespace fast::observe;

TEST_CASE("CRC-32C gives the check sums of RFC 3720, B.4") {
  CHECK(crc32c("123456789") == 0xe3069283U);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  CHECK(crc32c("") == 0);
}

TEST_CASE("a record is length, check sum, bytes, check sum") {
  const std::string bytes = record("abc");
  REQUIRE(bytes.size() == 8 + 4 + 3 + 4);
  CHECK(bytes.substr(0, 8) == std::string("\3\0\0\0\0\0\0\0", 8));
  CHECK(bytes.substr(12, 3) == "abc");
}
