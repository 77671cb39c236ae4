#include <sys/stat.h>
#include <unistd.h>

#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>
#include <fstream>
#include <new>

#include "core/host.hpp"
#include "core/message.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;

TEST_CASE("control characters, bytes that are not UTF-8 and turns of direction become escapes") {
  CHECK(printable("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(printable("a\nb\tc\rd\x7f") == "a\\nb\\tc\\rd\\x7f");
  CHECK(printable("a\nb\t", Newlines::keep) == "a\nb\\t");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\x9b31m");
  CHECK(printable("\xe2\x80\xae"
                  "cod") == "\\u202ecod");
  CHECK(printable("\xff\xc0\x80 \xed\xa0\x80 \xe2\x82") ==
        "\\xff\\xc0\\x80 \\xed\\xa0\\x80 \\xe2\\x82");
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
}

TEST_CASE("UTF-8 is known by its shortest forms") {
  for (const char* text : {"", "a\nb", "Größe 重み 🙂"}) CHECK(is_utf8(text));
  for (const char* text : {"gr\xf6\xdf"
                           "e",
                           "\xc0\x80", "\xed\xa0\x80", "a\xe2\x82"})
    CHECK_FALSE(is_utf8(text));
}

TEST_CASE("text in other alphabets stays, and a second call changes nothing") {
  const std::string text = "Größe 重み вес 🙂 \\x1b {0} %s";
  CHECK(printable(text) == text);
  const std::string once = printable("\x1b]0;title\x07");
  CHECK(printable(once) == once);
}

TEST_CASE("no error's message and no tensor's description commands a terminal") {
  const std::string name = "fc\x1b[2J\n.weight";
  float value = 0;
  CHECK(describe(TensorView{name, &value, {1}, DType::f32, Role::parameter, {}, {}}) ==
        "\"fc\\x1b[2J\\n.weight\" [1] f32");
  CHECK_THROWS_WITH(fail(ErrorKind::data, "tensor {}", name), "tensor fc\\x1b[2J\n.weight");
}

TEST_CASE("what cannot be read is named with its reason") {
  const testing::TemporaryDirectory directory;
  CHECK(why_unreadable_file(directory / "none") == "there is no such file");
  CHECK(why_unreadable_file(directory.path()) == "it is a directory");
  CHECK(why_unreadable_file("/dev/null") == "it is not a regular file");
  std::ofstream(directory / "file") << "text";
  CHECK(why_unreadable_file(directory / "file").empty());
  CHECK(why_unreadable_directory(directory.path()).empty());
  CHECK(why_unreadable_directory(directory / "file") == "it is not a directory");
  CHECK(why_unreadable_directory(directory / "none") == "there is no such directory");
  CHECK(why_unreadable_directory(directory / "file/below") == "there is no such directory");
  chmod((directory / "file").c_str(), 0);
  if (geteuid() == 0) {
    WARN("skipped in part: root reads what nobody may; bad_input_files_test runs as another user");
    return;
  }
  CHECK(why_unreadable_file(directory / "file") == "Permission denied");
}

TEST_CASE("the standard library's exceptions are told in sentences") {
  CHECK_THAT(message_of(std::bad_alloc()), ContainsSubstring("memory is used up") &&
                                               ContainsSubstring(" are free; use a smaller"));
  CHECK_THAT(message_of(std::length_error("vector::_M_default_append")),
             ContainsSubstring("larger than any memory"));
  try {
    std::filesystem::create_directory("/proc/none");
    FAIL("made a directory in /proc");
  } catch (const std::exception& error) {
    CHECK_THAT(message_of(error),
               ContainsSubstring("/proc/none: ") && !ContainsSubstring("filesystem error"));
  }
  CHECK(message_of(std::runtime_error("a\x1b")) == "a\\x1b");
}

TEST_CASE("a host has some memory and some threads left") {
  CHECK(available_memory_bytes() > (std::size_t{1} << 20));
  CHECK(available_host_memory_bytes() > (std::size_t{1} << 20));
  CHECK(available_memory_bytes() < (std::size_t{1} << 50));
  CHECK(most_threads() > 16);
  CHECK(resident_memory_bytes() > (std::size_t{1} << 16));
  CHECK(size_text(640) == "640 bytes");
  CHECK(size_text(1536.0 * 1024 * 1024) == "1.5 GiB");
}
