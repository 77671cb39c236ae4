#include "fast_serve/request_parser.hpp"

#include <cstring>
#include <limits>
#include <string>

#include "support/catch.hpp"

using namespace fast::serve;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

namespace {

const InputForm small_image{{1, 2, 2}, 3};

std::string raw(const Floats& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

void refused(const std::string& body, int status, const std::string& text) {
  INFO(body);
  try {
    parse_json(body, small_image);
    FAIL("the body was taken");
  } catch (const Refusal& refusal) {
    CHECK(refusal.status() == status);
    CHECK_THAT(refusal.what(), ContainsSubstring(text));
  }
}

}  // namespace

TEST_CASE("an instance is a list of values, or nested in the shape of a sample") {
  for (const char* body :
       {R"({"instances": [[1, 2.5, -3, 4e-1]]})", R"({"instances":[[[1,2.5],[-3,0.4]]]})",
        R"({"instances":[[[[1,2.5],[-3,0.4]]]]})"}) {
    INFO(body);
    const Instances found = parse_json(body, small_image);
    CHECK(found.count == 1);
    CHECK(std::get<Floats>(found.values) == Floats{1, 2.5F, -3, 0.4F});
    CHECK_FALSE(found.normalized);
  }
}

TEST_CASE("instances stand one after the other, and members in any order") {
  const Instances found = parse_json(
      R"({"normalized": true, "instances": [[1,2,3,4],[5,6,7,8]], "type": "f32"})", small_image);
  CHECK(found.count == 2);
  CHECK(found.normalized);
  CHECK(std::get<Floats>(found.values) == Floats{1, 2, 3, 4, 5, 6, 7, 8});
  const Instances bytes =
      parse_json(R"({"instances": [[0,1,254,255]], "type": "u8"})", small_image);
  CHECK(std::get<Bytes>(bytes.values) == Bytes{0, 1, 254, 255});
}

TEST_CASE("JSON that is no request is refused with the place of the mistake") {
  refused("", 400, "not JSON");
  refused("{", 400, "not JSON");
  refused("[1]", 400, "an object is required");
  refused("7", 400, "an object is required");
  refused("{}", 400, "\"instances\" is missing");
  refused(R"({"instances": []})", 400, "no instances");
  refused(R"({"instances": 3})", 400, "list");
  refused(R"({"instances": [3]})", 400, "instance 0");
  refused(R"({"instances": [[1,2,3,"4"]]})", 400, "a text");
  refused(R"({"instances": [[1,2,3,null]]})", 400, "null");
  refused(R"({"instances": [{"a":1}]})", 400, "an object");
  refused(R"({"instances": [[1,2,3]]})", 400, "[3]");
  refused(R"({"instances": [[1,2,3,4,5]]})", 400, "more than 4");
  refused(R"({"instances": [[[1,2,3,4]]]})", 400, "instance 0");
  refused(R"({"instances": [[1,2,3,4],[[1,2],[3,4]]]})", 400, "instance 1");
  refused(R"({"instances": [[[1,2,3],[4]]]})", 400, "instance 0");
  refused(R"({"instances": [[[[[1]]]]]})", 400, "deep");
  refused(R"({"instances": [[1,2,3,4]], "instance": 1})", 400, "did you mean \"instances\"?");
  refused(R"({"instances": [[1,2,3,4]], "instances": [[1,2,3,4]]})", 400, "twice");
  refused(R"({"instances": [[1,2,3,4]]} x)", 400, "not JSON");
  refused(std::string(R"({"instances": [[1,2,3,4]]})") + '\0', 400, "not JSON: byte 27");
  refused(std::string(R"({"instances": [[1,2,3,4]]})") + '\0' + "x", 400, "a zero byte");
  refused(R"({"instances": [[1,2,3,4],[1,2,3,4],[1,2,3,4],[1,2,3,4]]})", 413, "3 at most");
  refused(R"({"instances": [[1,2,3,4.5]], "type": "u8"})", 400, "0 to 255");
  refused(R"({"instances": [[1,2,3,256]], "type": "u8"})", 400, "0 to 255");
  refused(R"({"instances": [[1,2,3,4]], "type": "f64"})", 400, "choose f32 or u8");
  refused(R"({"instances": [[1,2,3,4]], "normalized": 1})", 400, "true or false");
  refused(std::string(100000, '['), 400, "an object is required");
  refused("{\"instances\":" + std::string(100000, '['), 400, "deep");
}

TEST_CASE("a row of a table may be an object, which is encoded as in training") {
  const std::vector<std::string> features{"age", "age is missing", "color=red", "color=1"};
  const Floats means{40.5F, 0.25F, 0.5F, 0.5F};
  const InputForm form{{4}, 3, features, means};
  const Instances found = parse_json(
      R"({"instances": [{"age": 7, "color": "red", "id": 3}, {"color": 1, "age": null},
                        {"age": "8.5", "color": "violet"}]})",
      form);
  CHECK(found.count == 3);
  CHECK(found.are_objects);
  CHECK(std::get<Floats>(found.values) == Floats{7, 0, 1, 0,      //
                                                 40.5F, 1, 0, 1,  //
                                                 8.5F, 0, 0, 0});
  const Instances mixed =
      parse_json(R"({"instances": [[1,0,0,1], {"age": true, "color": ""}]})", form);
  CHECK(std::get<Floats>(mixed.values) == Floats{1, 0, 0, 1, 1, 0, 0, 0});
  const auto refused_row = [&](const std::string& rows, const std::string& text) {
    INFO(rows);
    CHECK_THROWS_WITH(parse_json("{\"instances\": [" + rows + "]}", form), ContainsSubstring(text));
  };
  refused_row(R"({"age": 1})", "instance 0 has no member \"color\"");
  refused_row(R"({"age": "x", "color": "red"})", "\"age\" is \"x\"; a finite number is required");
  refused_row(R"({"age": 1e60, "color": "red"})", "a finite number is required");
  refused_row(R"({"age": [1], "color": "red"})", "instance 0 has a member that is a list");
  refused_row(R"({"age": {}, "color": "red"})", "instance 0 has a member that is an object");
  refused_row(R"([1,2,3,{}])", "an object");
  refused_row("{},{}", "instance 0 has no member \"age\"");
  refused_row(R"({"age":1,"color":2},{"age":1,"color":2},{"age":1,"color":2},{})", "3 at most");
  CHECK_THROWS_WITH(parse_json(R"({"instances": [{"age":1,"color":2}], "type": "u8"})", form),
                    ContainsSubstring("the type u8 is for lists"));
}

TEST_CASE("numbers that no float32 holds are refused") {
  for (const char* number : {"NaN", "Infinity", "-Infinity", "1e39", "1e999", "-1e39"}) {
    refused(fmt::format(R"({{"instances": [[1,2,3,{}]]}})", number), 400, "");
  }
  CHECK(
      std::get<Floats>(
          parse_json(R"({"instances": [[1,2,3,3.4028234663852886e38]]})", small_image).values)[3] ==
      std::numeric_limits<float>::max());
}

TEST_CASE("raw values are taken bit for bit") {
  const Floats values{1, -0.0F, 1e-42F, 3.4e38F, 5, 6, 7, 8};
  for (const char* shape : {"", "2x1x2x2", "2x4", "2x2x2"}) {
    INFO(shape);
    const Instances found = parse_raw(raw(values), small_image, ElementType::f32, shape);
    CHECK(found.count == 2);
    const auto& taken = std::get<Floats>(found.values);
    CHECK(std::memcmp(taken.data(), values.data(), values.size() * 4) == 0);
  }
  CHECK(parse_raw(raw({1, 2, 3, 4}), small_image, ElementType::f32, "1x2x2").count == 1);
  const Instances bytes = parse_raw("abcdefgh", small_image, ElementType::u8, "");
  CHECK(std::get<Bytes>(bytes.values) == Bytes{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'});
}

TEST_CASE("raw values that are no samples are refused") {
  const auto status = [](const std::string& body, const std::string& shape) {
    try {
      parse_raw(body, small_image, ElementType::f32, shape);
      return 200;
    } catch (const Refusal& refusal) {
      return refusal.status();
    }
  };
  const std::string one = raw({1, 2, 3, 4});
  CHECK(status(one, "") == 200);
  CHECK(status("", "") == 400);
  CHECK(status(one + "x", "") == 400);
  CHECK(status(raw({1, 2, 3}), "") == 400);
  CHECK(status(one + one + one + one, "") == 413);
  for (const char* shape : {"2x1x2x2", "1x1x2x3", "x", "0x4", "1x-4", "1x99999999999999", "4x4"}) {
    INFO(shape);
    CHECK(status(one, shape) == 400);
  }
  CHECK(status(raw({1, 2, std::numeric_limits<float>::quiet_NaN(), 4}), "") == 400);
  CHECK(status(raw({1, 2, 3, -std::numeric_limits<float>::infinity()}), "") == 400);
}
